"""What a refit makes of pairs that it drew itself, over HTTP."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from itertools import count

import numpy as np
import pytest
from sqlalchemy import Engine, text

from app.services.acquire import run
from tests.api.conftest import BoardCaller
from tests.api.test_acquire import FEATURES, ITEMS, answer_all, ask, contexts, learned
from tests.refitting import Bench

Make = Callable[..., BoardCaller]
AGE = text("""
UPDATE offers SET created_at = offers.created_at - (600 - offers.id % 600) * INTERVAL '6 seconds'
FROM boards WHERE boards.id = board_id AND slug = :slug
""")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture
def pool(make_board: Make) -> BoardCaller:
    return make_board(items=ITEMS, unit="context", features=FEATURES)


@pytest.mark.parametrize("unit", ["battle", "context"])
def test_answers_still_out_are_in_what_is_exported(make_board: Make, bench: Bench, unit: str) -> None:
    """Half of the draws are released; another round has only just been drawn, and is too young for any answer."""
    board = make_board(items=ITEMS, unit=unit, features=FEATURES)
    board("POST", "/contexts", {"contexts": contexts(200)})
    drawn = ask(board, count=200, mode="one")
    for each in drawn[::2]:
        assert board("POST", f"/assignments/{each['id']}/release", {"reason": "none"}).status_code == 204
    answer_all(board, drawn[1::2], seed=3)
    assert len(ask(board, contexts=contexts(50, start=500), mode="one")) == 50
    bench.refit(board.slug)
    ranking = board("GET", "/rankings?estimand=borda").json()
    assert (ranking["rows"], ranking["votes"], ranking["propensity"]) == (200, 100, "logged")
    rows = list(csv.DictReader(io.StringIO(board("GET", "/votes/export?format=csv").text)))
    rates = np.array([float(row["propensity_used"]) / float(row["propensity"]) for row in rows])
    assert rates.mean() == pytest.approx(0.5, abs=0.1)
    psi = [json.loads(line)["psi"] for line in board("GET", "/votes/export?influence=borda").text.splitlines()]
    assert len(psi) == 200
    for item in ranking["rankings"]:
        assert np.mean([each[item["item"]] for each in psi]) == pytest.approx(item["score"], abs=1e-9)


def test_draws_that_are_all_answered_in_one_go_are_balanced(make_board: Make, bench: Bench) -> None:
    """Six hundred pairs, drawn in the course of an hour; then all answers at once."""
    board = make_board(items=ITEMS, unit="context", features=FEATURES)
    drawn = []
    for start in range(0, 600, 100):
        drawn += ask(board, contexts=contexts(100, start=start), mode="one")
    with bench.engine.begin() as connection:
        connection.execute(AGE, {"slug": board.slug})
    answer_all(board, drawn, seed=5)
    bench.refit(board.slug)
    rows = list(csv.DictReader(io.StringIO(board("GET", "/votes/export?format=csv").text)))
    assert len(rows) == 600
    assert all(float(row["propensity_used"]) == pytest.approx(float(row["propensity"])) for row in rows)
    assert board("GET", "/rankings?estimand=borda").json()["status"] == "ok"


@pytest.mark.slow
def test_weights_of_what_is_drawn_count_the_contexts(
    pool: BoardCaller, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Σ 1/pi over the drawn of each ordered pair estimates the number of contexts, and the budget is kept."""
    learned(pool, bench)
    policy = pool("GET", "/policy").json()
    seeds = count()
    monkeypatch.setattr(run, "generator", lambda: np.random.default_rng(next(seeds)))
    total: dict[tuple[str, str], float] = {}
    square: dict[tuple[str, str], float] = {}
    drawn = 0
    for start in range(10_000, 30_000, 1_000):
        for each in ask(pool, contexts=contexts(1_000, start=start)):
            pair, weight = (each["left"], each["right"]), 1 / each["propensity"]
            assert policy["floor"] <= each["propensity"] <= 1
            total[pair] = total.get(pair, 0.0) + weight
            square[pair] = square.get(pair, 0.0) + weight * (weight - 1)
            drawn += 1
    assert len(total) == 12
    assert max(abs(total[pair] - 20_000) / square[pair] ** 0.5 for pair in total) < 4
    assert drawn / 20_000 == pytest.approx(policy["budget"], rel=0.02)


def test_the_policy_in_force_is_shown_until_the_next_one(pool: BoardCaller, bench: Bench) -> None:
    learned(pool, bench)
    before = pool("GET", "/policy").json()
    assert pool("PATCH", "", {"acquisition": {"budget": 2.0}}).status_code == 200
    assert pool("GET", "/policy").json() == before
    bench.refit(pool.slug)
    while (after := pool("GET", "/policy").json())["id"] == before["id"]:
        pass
    assert (after["budget"], after["expected_cost"]) == (2.0, pytest.approx(2.0))
