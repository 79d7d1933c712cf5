"""What a refit makes of pairs that it drew itself, over HTTP."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.api.conftest import BoardCaller
from tests.api.test_acquire import FEATURES, ITEMS, answer_all, ask, contexts
from tests.refitting import Bench

Make = Callable[..., BoardCaller]


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.mark.parametrize("unit", ["battle", "context"])
def test_answers_still_out_are_in_what_is_exported(make_board: Make, bench: Bench, unit: str) -> None:
    """Half of the draws are released; another round has only just been drawn."""
    board = make_board(items=ITEMS, unit=unit, features=FEATURES)
    board("POST", "/contexts", {"contexts": contexts(200)})
    drawn = ask(board, count=200, mode="one")
    for each in drawn[::2]:
        assert board("POST", f"/assignments/{each['id']}/release", {"reason": "none"}).status_code == 204
    answer_all(board, drawn[1::2], seed=3)
    assert len(ask(board, contexts=contexts(50, start=500), mode="one")) == 50
    bench.refit(board.slug)
    ranking = board("GET", "/rankings?estimand=borda").json()
    assert (ranking["rows"], ranking["votes"], ranking["propensity"]) == (250, 100, "logged")
    rows = list(csv.DictReader(io.StringIO(board("GET", "/votes/export?format=csv").text)))
    rates = np.array([float(row["propensity_used"]) / float(row["propensity"]) for row in rows])
    assert 0.3 < rates.mean() < 0.6
    psi = [json.loads(line)["psi"] for line in board("GET", "/votes/export?influence=borda").text.splitlines()]
    assert len(psi) == 250
    for item in ranking["rankings"]:
        assert np.mean([each[item["item"]] for each in psi]) == pytest.approx(item["score"], abs=1e-9)
