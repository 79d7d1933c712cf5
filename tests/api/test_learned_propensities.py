"""Boards whose propensities are learned from features: what is named, exported and reused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from app.stats.types import Floats
from tests.api.conftest import BoardCaller
from tests.api.test_influence import agree, export
from tests.refitting import Bench

ITEMS = ("ada", "bell", "curie")
FEATURES = [{"name": "size", "kind": "numeric"}, {"name": "lang", "kind": "categorical"}]


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def chances(size: float) -> Floats:
    """(6,) of the ordered pairs: ada is shown where contexts are large, curie where they are small."""
    pull = np.exp(3.0 * size * np.array([1.0, 0.0, -1.0]))
    weight: Floats = np.outer(pull, pull)[~np.eye(3, dtype=np.bool_)]
    shares: Floats = weight / weight.sum()
    return shares


def followers(size: int, *, seed: int) -> list[dict[str, Any]]:
    """Votes on pairs that were drawn by the context's size."""
    rng = np.random.default_rng(seed)
    pairs = [(left, right) for left in ITEMS for right in ITEMS if left != right]
    votes = []
    for number in range(size):
        spread = float(rng.uniform(-1.0, 1.0))
        left, right = pairs[rng.choice(6, p=chances(spread))]
        features = {"size": spread, "lang": ("de", "en")[number % 2]}
        outcome = ("left", "right", "tie")[rng.choice(3, p=[0.45, 0.35, 0.2])]
        votes.append(
            {
                "context": {"id": f"p{number}", "features": features},
                "left": left,
                "right": right,
                "outcome": outcome,
                "created_at": f"2026-03-{1 + number * 28 // size:02d}T00:00:00Z",
            }
        )
    return votes


@pytest.mark.parametrize("unit", ["battle", "context"])
def test_learned_propensities_are_used_named_and_exported(
    make_board: Callable[..., BoardCaller], bench: Bench, unit: str
) -> None:
    board = make_board(
        items=ITEMS,
        unit=unit,
        features=FEATURES,
        segments=["lang"],
        outcomes="ternary",
        propensity="estimated-lightgbm",
    )
    votes = followers(600, seed=1)
    assert {fate["status"] for fate in board.batch(*votes)} == {"created"}
    snapshot = bench.refit(board.slug)
    assert snapshot.summary["propensity"] == "estimated-lightgbm"
    model = snapshot.summary["propensity_model"]
    assert model["folds_helped"] == 5
    assert model["log_loss"] < model["frequency_log_loss"] - 0.1
    assert board("GET", "/diagnostics").json()["propensity_model"] == model
    assert board("GET", "/rankings").json()["propensity"] == "estimated-lightgbm"
    lines = [json.loads(line) for line in board("GET", "/votes/export?format=jsonl").text.splitlines()]
    used = {line["context"]: line["propensity_used"] for line in lines}
    pairs = [(left, right) for left in ITEMS for right in ITEMS if left != right]
    true = {
        vote["context"]["id"]: chances(vote["context"]["features"]["size"])[pairs.index((vote["left"], vote["right"]))]
        for vote in votes
    }
    errors = np.array([np.log(used[name] / true[name]) for name in true])
    flat = np.array([np.log(1 / 6 / true[name]) for name in true])
    assert (errors**2).mean() < 0.35 * (flat**2).mean()
    for query in ("estimand=borda", "estimand=bt&segment=lang:de"):
        agree(board, export(board, f"influence={query.removeprefix('estimand=')}"), query)


def test_a_window_divides_by_the_propensities_of_the_snapshot(
    make_board: Callable[..., BoardCaller], bench: Bench
) -> None:
    board = make_board(items=ITEMS, features=FEATURES, outcomes="ternary", propensity="estimated-lightgbm")
    board.batch(*followers(300, seed=2))
    bench.refit(board.slug)
    whole = board("GET", "/rankings?estimand=borda").json()["rankings"]
    window = board("GET", "/rankings?estimand=borda&from=2026-01-01T00:00:00Z").json()["rankings"]
    part = board("GET", "/rankings?estimand=borda&from=2026-03-15T00:00:00Z").json()
    assert [row["score"] for row in window] == pytest.approx([row["score"] for row in whole], abs=1e-12)
    assert part["rows"] < 200
    assert all(row["standard_error"] > 0 for row in part["rankings"])


def test_without_features_the_frequencies_stay(make_board: Callable[..., BoardCaller], bench: Bench) -> None:
    found = {}
    for kind in ("estimated", "estimated-lightgbm"):
        board = make_board(items=ITEMS, outcomes="ternary", propensity=kind)
        board.batch(*({**vote, "context": {"id": vote["context"]["id"]}} for vote in followers(80, seed=3)))
        bench.refit(board.slug)
        found[kind] = [row["score"] for row in board("GET", "/rankings?estimand=borda").json()["rankings"]]
    assert found["estimated"] == found["estimated-lightgbm"]
