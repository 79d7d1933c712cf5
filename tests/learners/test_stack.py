"""Models asked as one say what each of them says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.learners import DavidsonLearner, stacked
from app.learners.constant import ConstantRates
from app.learners.davidson.model import DavidsonModel
from app.learners.davidson.pairs import PairEffects
from app.learners.trees import Forest
from app.stats.simulate.cyclic import Cyclic
from app.stats.types import Covariates, Floats
from tests.learners.trainings import drawn


@pytest.fixture(scope="module")
def models() -> list[DavidsonModel]:
    """One with trees, one whose pairs' effects are constant, one without trees and far from the others."""
    fits = [DavidsonLearner().fit(drawn(Cyclic(world=3), size, seed=3), seed=1) for size in (500, 300)]
    first, second = (fit for fit in fits if isinstance(fit, DavidsonModel))
    assert all(first.utility_trees.texts)
    constant = replace(second, pairs=PairEffects(second.pairs.gamma[:, :1], second.pairs.n_items))
    grown = replace(second.utilities, theta=2.0 * second.utilities.theta, position=-0.7)
    bare = replace(second, utilities=grown, utility_trees=Forest([""] * len(grown.theta)))
    return [first, constant, bare]


def contexts(models: list[DavidsonModel], size: int) -> Floats:
    x = np.random.default_rng(size).normal(0.0, 2.0, (size, models[0].scaling.mean.size))
    x[-1, 0] = np.nan
    return x


@pytest.mark.parametrize("size", [1, 5])
@pytest.mark.parametrize("far", [1.0, 500.0], ids=["as fitted", "logits beyond powers of e"])
def test_a_stack_says_what_its_models_say(models: list[DavidsonModel], size: int, far: float) -> None:
    distant = replace(models[0].utilities, theta=far * models[0].utilities.theta)
    known = [replace(models[0], utilities=distant), *models[1:]]
    x, stack = Covariates(contexts(models, size)), stacked(known)
    assert stack is not None
    apart = np.concatenate([model.probabilities(x) for model in known])
    np.testing.assert_allclose(stack.probabilities(x), apart, rtol=1e-12, atol=1e-300)


def test_judges_are_silent_in_a_stack(models: list[DavidsonModel]) -> None:
    judged = [replace(each, utilities=replace(each.utilities, judges=np.array([0.4, 2.0]))) for each in models]
    x, stack, size = contexts(models, 2), stacked(judged), models[0].pairs.n_items
    silent = Covariates(x, np.full((2, size, size, 2), np.nan))
    assert stack is not None
    apart = np.concatenate([model.probabilities(silent) for model in judged])
    np.testing.assert_allclose(stack.probabilities(silent), apart, rtol=1e-12)


def test_what_is_not_alike_is_not_stacked(models: list[DavidsonModel]) -> None:
    rates = ConstantRates(np.full(models[0].categories.n_categories, 0.25), models[0].pairs.n_items)
    other = replace(models[0], categories=replace(models[0].categories, slope=2.0 * models[0].categories.slope))
    for unlike in ([], [models[0], rates], [models[0], other]):
        assert stacked(unlike) is None
