"""Live rankings that are read while updates come in."""

from __future__ import annotations

from functools import partial

import pytest
from sqlalchemy import Engine

from app.db.locks import Lock, lease
from app.db.models.snapshots import Snapshot
from app.domain.boards import Board
from app.services.live.run import Updater
from app.services.rankings.opened import Opener
from app.services.rankings.query import RankingQuery
from app.services.rankings.read import ranking
from tests.refitting import ITEMS, Bench, ballots, cast, new_board


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def updated(bench: Bench, *, seed: int) -> tuple[Board, Updater, Snapshot]:
    """A board with a snapshot and one live update."""
    board, updater = new_board(bench), Updater(bench.work, partial(lease, bench.engine, Lock.LIVE))
    cast(bench, board, ballots(ITEMS, 300, seed=seed))
    snapshot = bench.refit(board.slug)
    cast(bench, board, ballots(ITEMS, 10, seed=seed + 1))
    updater.serve(board.id)
    return board, updater, snapshot


def test_an_update_between_two_reads_is_taken_whole(bench: Bench) -> None:
    board, updater, snapshot = updated(bench, seed=5)
    with bench.work() as work:
        # What a session has read once it keeps, so this is the state that the answer would begin with.
        known = work.live.find(snapshot.id)
        assert known is not None
        first = known.version
        cast(bench, board, ballots(ITEMS, 20, seed=7))
        updater.serve(board.id)
        answer = ranking(work, board, RankingQuery(), Opener(), snapshot_id=snapshot.id)
    assert answer["live"]["version"] > first
    assert (answer["live"]["votes"], answer["live"]["rows"], answer["votes"]) == (30, 30, 330)


def test_a_snapshot_whose_sums_are_gone_is_answered_as_it_was_known(bench: Bench) -> None:
    board, _, snapshot = updated(bench, seed=8)
    with bench.work() as work:
        known = work.live.find(snapshot.id)
        assert known is not None
        for seed in (10, 11):
            cast(bench, board, ballots(ITEMS, 1, seed=seed))
            bench.refit(board.slug)
        answer = ranking(work, board, RankingQuery(), Opener(), snapshot_id=snapshot.id)
    assert answer["snapshot"] == str(snapshot.id)
