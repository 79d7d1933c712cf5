"""A few votes on a large menu beside hundreds on pairs: they do not turn the board round."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine

from app.domain.boards import Board
from app.services.equilibrium.read import equilibrium
from app.services.rankings.history import history
from app.services.rankings.query import RankingQuery
from tests.refitting import ITEMS, Bench, ballots, cast, new_board

LAST_FIRST = {"menu": list(ITEMS), "ranking": [["dirac"], ["curie"], ["bell"], ["ada"]]}


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def played(bench: Bench, board: Board) -> dict[str, Any]:
    snapshot = bench.refit(board.slug)
    with bench.work() as work:
        return equilibrium(work, board, {}, segment=None, snapshot_id=snapshot.id)


def test_a_menu_counts_beside_pairs_once_it_has_votes_enough(bench: Bench) -> None:
    board = new_board(bench)
    cast(bench, board, ballots(ITEMS, 600, seed=3))
    alone = played(bench, board)
    assert alone["winners"][0] == "ada"
    cast(bench, board, [LAST_FIRST] * 2)
    few = played(bench, board)
    assert few["winners"] == alone["winners"]
    assert few["distribution"]["ada"] == pytest.approx(alone["distribution"]["ada"], abs=0.15)
    assert few["votes"] == 600
    with bench.work() as work:
        past = history(work, board, RankingQuery(), points=5)
    assert [point["votes"] for point in past["points"]] == [600, 602]
    cast(bench, board, [LAST_FIRST] * 60)
    many = played(bench, board)
    assert many["votes"] == 662
    assert many["distribution"]["ada"] < alone["distribution"]["ada"] - 0.3


def test_a_thin_menu_counts_where_nothing_else_shows_its_pairs(bench: Bench) -> None:
    board = new_board(bench)
    cast(bench, board, ballots(ITEMS[:3], 300, seed=4))
    cast(bench, board, [LAST_FIRST] * 5)
    found = played(bench, board)
    assert found["votes"] == 305
    assert set(found["distribution"]) == set(ITEMS)
