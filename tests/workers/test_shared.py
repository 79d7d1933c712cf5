"""Refits that several workers share: real processes, which are killed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from redis import Redis
from sqlalchemy import Engine, text

from app.db.models.snapshots import Snapshot
from app.db.tasks import LEASE
from app.domain.boards import Board
from tests.faults.parts import await_truth, kill_while
from tests.refitting import Bench, ballots, cast, new_board
from tests.workers.conftest import Start

ITEMS = tuple(f"m{n:02}" for n in range(10))
SIZE, LANGUAGES = 9_000, 9
TABLES = ("batches", "tasks", "task_pieces")
ALONE = {"ORTHORANK_WORKER_PROCESSES": "1"}


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture(scope="module")
def board(bench: Bench) -> Board:
    """Large enough for fits and rankings to be shared, and refitted once by nobody but this process."""
    board = new_board(bench, ITEMS, segments=["lang"])
    sent = ballots(ITEMS, SIZE, seed=1, contexts=SIZE)
    for vote in sent:
        vote["context"]["features"]["lang"] = f"l{int(vote['context']['id'][1:]) % LANGUAGES}"
    cast(bench, board, sent)
    bench.refit(board.slug)
    return board


@pytest.fixture
def asked(bench: Bench, board: Board, redis_url: str) -> UUID:
    """A job that cannot be served by the snapshot that is there."""
    with Redis.from_url(redis_url) as client:
        client.flushdb()
    with bench.work() as work:
        work.session.execute(text("UPDATE snapshots SET spec = 'another'"))
        job = work.jobs.request(board.id)
        work.commit()
    return job.id


def contents(bench: Bench, snapshot: Snapshot) -> Any:
    with bench.work() as work:
        found = work.session.execute(
            text("SELECT kind, fold, body FROM artifacts WHERE snapshot_id = :id"), {"id": snapshot.id}
        )
        told = {name: value for name, value in snapshot.summary.items() if name not in ("gathered_at", "marks")}
        return snapshot.digest, told, {(row.kind, row.fold): row.body for row in found}


def newest(bench: Bench, board: Board) -> Snapshot:
    with bench.work() as work:
        found = work.snapshots.newest(board.id)
        assert found is not None
        return found


def claimants(bench: Bench) -> list[tuple[UUID, int, int]]:
    """Who has claimed tasks, how many, and how many of them are not made."""
    with bench.work() as work:
        query = "SELECT claimed_by, count(*), count(*) FILTER (WHERE made_at IS NULL) FROM tasks"
        rows = work.session.execute(text(f"{query} WHERE claimed_by IS NOT NULL GROUP BY claimed_by"))
        return [(row[0], row[1], row[2]) for row in rows]


def rows_left(bench: Bench) -> int:
    with bench.work() as work:
        query = (
            "SELECT (SELECT count(*) FROM batches) + (SELECT count(*) FROM tasks) + (SELECT count(*) FROM task_pieces)"
        )
        return int(work.session.execute(text(query)).scalar_one())


def batches(bench: Bench) -> list[UUID]:
    with bench.work() as work:
        return list(work.session.execute(text("SELECT id FROM batches")).scalars())


def helped(log: Path) -> list[int]:
    """How many tasks of one batch after the other a worker made."""
    return [int(number) for number in re.findall(r"made (\d+) tasks of batch", log.read_text())]


def at_work(bench: Bench) -> bool:
    """Whether two workers have tasks that they have not made."""
    return [missing > 0 for *_, missing in claimants(bench)] == [True, True]


def succeeds(bench: Bench, job: UUID) -> Callable[[], bool]:
    def holds() -> bool:
        state = bench.job(job).state
        assert state != "failed", bench.job(job).error
        return state == "succeeded"

    return holds


@pytest.mark.slow
def test_two_workers_find_what_one_does(bench: Bench, board: Board, asked: UUID, start: Start, tmp_path: Path) -> None:
    alone = contents(bench, newest(bench, board))
    start("worker", "--only", "tasks", log="helper", **ALONE)
    await_truth(lambda: " ready." in (tmp_path / "helper").read_text(), seconds=60)
    start("beat")
    start("worker", **ALONE)
    await_truth(succeeds(bench, asked), seconds=120)
    assert newest(bench, board).id == bench.job(asked).snapshot_id
    assert contents(bench, newest(bench, board)) == alone
    assert rows_left(bench) == 0
    await_truth(lambda: len(helped(tmp_path / "helper")) == 2, seconds=20)
    fits, parts = helped(tmp_path / "helper")
    assert fits > 0
    assert parts > 0


@pytest.mark.slow
def test_a_helping_worker_that_is_killed_costs_seconds(bench: Bench, board: Board, asked: UUID, start: Start) -> None:
    alone = contents(bench, newest(bench, board))
    helper = start("worker", "--only", "tasks", **ALONE)
    start("beat")
    leader = start("worker", **ALONE)
    kill_while(helper, lambda: at_work(bench), seconds=90)
    took = await_truth(succeeds(bench, asked), seconds=120)
    assert took > LEASE / 2
    assert leader.poll() is None
    assert contents(bench, newest(bench, board)) == alone
    assert rows_left(bench) == 0


@pytest.mark.slow
def test_a_leading_worker_that_is_killed_leaves_nothing(bench: Bench, board: Board, asked: UUID, start: Start) -> None:
    alone = contents(bench, newest(bench, board))
    start("worker", "--only", "tasks", **ALONE)
    start("beat")
    leader = start("worker", **ALONE)
    kill_while(leader, lambda: at_work(bench), seconds=90)
    (batch,) = batches(bench)
    start("worker", "--only", "live")
    await_truth(lambda: batch not in batches(bench), seconds=30)
    start("worker", "--only", "refits", **ALONE)
    await_truth(succeeds(bench, asked), seconds=120)
    assert bench.job(asked).attempts == 2
    assert contents(bench, newest(bench, board)) == alone
    assert rows_left(bench) == 0
