"""A refit that loses the database is taken up again: nobody has to vote once more for it."""

from __future__ import annotations

from functools import partial

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError

from app.db.locks import Lock, lease
from app.services.refit.crew.ports import IN_TURN, Crew
from app.services.refit.run import Refitter
from tests.refitting import Bench, ballots, cast, new_board

ITEMS = ("ada", "bell", "curie")
CUT_ALL = text("""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
""")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def test_a_job_whose_worker_was_cut_off_is_not_failed_but_taken_up_again(bench: Bench, database: Engine) -> None:
    board = new_board(bench, ITEMS)
    cast(bench, board, ballots(ITEMS, 60, seed=1))
    with bench.work() as work:
        asked = work.jobs.request(board.id).id
        work.commit()

    def cut(_: int) -> Crew:
        with database.connect() as connection:
            connection.execute(CUT_ALL)
        return IN_TURN

    alone = partial(lease, database, Lock.REFIT)
    with pytest.raises(OperationalError):
        Refitter(bench.work, alone, cut).serve(board.id)
    assert (bench.job(asked).state, bench.job(asked).attempts) == ("running", 1)
    with bench.work() as work:
        assert board.id in work.jobs.lagging()
    Refitter(bench.work, alone).serve(board.id)
    assert (bench.job(asked).state, bench.job(asked).attempts) == ("succeeded", 2)
