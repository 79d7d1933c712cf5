"""Trees in arrays against LightGBM's own prediction."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest

from app.learners.trees import FEW, Forest
from app.learners.walks import Walks
from app.stats.types import Floats

COLUMNS = 5


def rows(n: int, *, gaps: float, seed: int) -> Floats:
    """Covariates, the first one of two values, some of them missing and some exactly zero."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, COLUMNS))
    x[:, 0] = rng.integers(0, 2, n)
    x[rng.random(x.shape) < 0.1] = 0.0
    x[rng.random(x.shape) < gaps] = np.nan
    return x


def grown(*, gaps: float, seed: int, leaves: int = 6, rounds: int = 20) -> str:
    x = rows(400, gaps=gaps, seed=seed)
    noise = np.random.default_rng(seed + 1).normal(size=len(x))
    # What a gap says points to the left in one column and to the right in another.
    y = np.nan_to_num(x[:, 0] + x[:, 1] ** 2) + 3 * np.isnan(x[:, 1]) - 3 * np.isnan(x[:, 2]) + noise
    shape = {"num_leaves": leaves, "num_threads": 1, "verbosity": -1}
    return str(lightgbm.train(shape, lightgbm.Dataset(x, y, params=shape), rounds).model_to_string())


@pytest.fixture(scope="module")
def texts() -> list[str]:
    deep = grown(gaps=0.2, seed=3, leaves=31, rounds=5)
    flat = grown(gaps=0.0, seed=4, leaves=2, rounds=1)
    return ["", grown(gaps=0.0, seed=1), grown(gaps=0.2, seed=2), "", deep, flat, ""]


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_trees_in_arrays_say_what_lightgbm_says(texts: list[str], gaps: float) -> None:
    x = rows(300, gaps=gaps, seed=9)
    plain = [lightgbm.Booster(model_str=text).predict(x) if text else np.zeros(len(x)) for text in texts]
    np.testing.assert_allclose(Walks.of(texts).scores(x), np.stack(plain, axis=1), rtol=0, atol=1e-12)


def test_a_tree_without_splits_is_a_number(texts: list[str]) -> None:
    x = np.zeros((50, COLUMNS))
    dull = lightgbm.train({"verbosity": -1, "num_threads": 1}, lightgbm.Dataset(x, np.full(50, 2.5)), 1)
    found = Walks.of([dull.model_to_string(), texts[1]]).scores(x[:2])
    np.testing.assert_allclose(found[:, 0], dull.predict(x[:2]), atol=1e-12)
    assert Walks.of([]).scores(x).shape == (50, 0)


def test_few_rows_and_many_have_the_same_scores(texts: list[str]) -> None:
    forest, x = Forest(texts), rows(3 * FEW, gaps=0.1, seed=5)
    parts = [forest.all_scores(part) for part in np.split(x, 3)]
    np.testing.assert_allclose(np.concatenate(parts), forest.all_scores(x), rtol=0, atol=1e-12)
    assert forest.all_scores(x[:0]).shape == (0, len(texts))
