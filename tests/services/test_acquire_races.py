"""Many annotators at once: no unit is given twice, a lease ends once, and what is cut short leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, TypeVar
from uuid import uuid4

import pytest
from sqlalchemy import Engine, text

from app.db.engine import open_engine, open_sessions
from app.db.unit_of_work import UnitOfWork
from app.domain.acquire import AcquireDraft, AskedContext
from app.domain.ballots import Ballot
from app.domain.boards import Acquisition, Board, BoardDraft
from app.domain.contexts import ContextDraft
from app.domain.items import ItemDraft
from app.services import boards, contexts, items, votes
from app.services.acquire import run
from app.services.loaded.shelf import Shelf

CLIENTS = 16
NUMBERS = count()
T = TypeVar("T")
Open = Callable[[], UnitOfWork]
Row = dict[str, Any]


@pytest.fixture
def open_work(database_url: str) -> Any:
    engine = open_engine(database_url, pool_size=32)
    sessions = open_sessions(engine)
    yield lambda: UnitOfWork(sessions)
    engine.dispose()


@pytest.fixture
def shelf(open_work: Open) -> Any:
    made = Shelf(open_work)
    yield made
    made.close()


def make_board(open_work: Open, *, pool: int = 0, **acquisition: Any) -> Board:
    asked = Acquisition(**{"mode": "one", **acquisition})
    with open_work() as work:
        board = boards.create(work, BoardDraft(slug=f"rush-{next(NUMBERS)}", unit="context", acquisition=asked))
    for name in ("ada", "bell", "curie"):
        with open_work() as work:
            items.put(work, board, name, ItemDraft())
    for start in range(0, pool, 5_000):
        drafts = [ContextDraft(id=f"c{number}") for number in range(start, min(start + 5_000, pool))]
        with open_work() as work:
            contexts.register(work, board, drafts)
    return board


def ask(open_work: Open, board: Board, shelf: Shelf, *, key: str | None = None, **wanted: Any) -> list[Row]:
    with open_work() as work:
        answer = run.acquire(work, board, AcquireDraft(**wanted), shelf=shelf, key=key, now=datetime.now(UTC))
    rows: list[Row] = answer.document["assignments"]
    return rows


def together(actions: Sequence[Callable[[], T]]) -> list[T]:
    """What each action returns, all begun at the same moment."""
    start = threading.Barrier(len(actions))

    def act(action: Callable[[], T]) -> T:
        start.wait()
        return action()

    with ThreadPoolExecutor(len(actions)) as pool:
        return list(pool.map(act, actions))


def drain(open_work: Open, board: Board, shelf: Shelf, *, clients: int, count: int) -> list[list[Row]]:
    """What each of the clients was given until the pool had nothing left."""

    def work(annotator: str) -> list[Row]:
        mine: list[Row] = []
        while rows := ask(open_work, board, shelf, count=count, annotator=annotator):
            mine += rows
        return mine

    return together([lambda name=f"a{number}": work(name) for number in range(clients)])  # type: ignore[misc]


def counted(database: Engine, board: Board, query: str) -> int:
    with database.connect() as connection:
        return int(connection.execute(text(query), {"board": board.id}).scalar_one())


AT_WORK = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle' AND :board > 0
"""

HALF_DONE = """
SELECT count(*) FROM contexts
WHERE board_id = :board AND (
    (offered <> EXISTS (SELECT FROM offers WHERE context_id = contexts.id))
    OR (offered <> EXISTS (SELECT FROM assignments WHERE context_id = contexts.id))
)
"""
"""Contexts with one of the three that make a draw, without the others (every draw of mode `one` has an assignment)."""


def test_clients_that_ask_at_once_share_the_pool(open_work: Open, shelf: Shelf, database: Engine) -> None:
    board = make_board(open_work, pool=600)
    given = drain(open_work, board, shelf, clients=CLIENTS, count=7)
    units = [row["context"] for rows in given for row in rows]
    assert len(units) == len(set(units)) == 600
    assert counted(database, board, "SELECT count(*) FROM assignments WHERE board_id = :board") == 600
    assert counted(database, board, HALF_DONE) == 0


@pytest.mark.slow
def test_64_clients_never_get_the_same_of_10000_units(open_work: Open, shelf: Shelf) -> None:
    board = make_board(open_work, pool=10_000)
    given = drain(open_work, board, shelf, clients=64, count=20)
    units = [row["context"] for rows in given for row in rows]
    assert len(units) == len(set(units)) == 10_000


def test_with_overlap_each_unit_goes_to_so_many_people(open_work: Open, shelf: Shelf) -> None:
    board = make_board(open_work, pool=60, overlap=3)
    given = drain(open_work, board, shelf, clients=8, count=5)
    for rows in given:
        assert max(Counter(row["context"] for row in rows).values(), default=0) <= 1
    # Who finds the last pairs in the hands of others is sent away too soon.
    given += [ask(open_work, board, shelf, count=60, annotator=f"late {number}") for number in range(3)]
    assert Counter(Counter(row["context"] for rows in given for row in rows).values()) == {3: 60}


def test_who_finds_the_rest_in_other_hands_is_asked_to_come_back_soon(
    open_work: Open, shelf: Shelf, database: Engine
) -> None:
    board = make_board(open_work, pool=2, overlap=2)
    draft = AcquireDraft(count=9, annotator="ben")
    assert len(ask(open_work, board, shelf, count=1, annotator="anna")) == 1

    def retry_after() -> int | None:
        with open_work() as work:
            return run.acquire(work, board, draft, shelf=shelf, key=None, now=datetime.now(UTC)).retry_after

    with database.connect() as other:
        for table in ("contexts", "assignments"):
            other.execute(text(f"SELECT FROM {table} WHERE board_id = :board FOR UPDATE"), {"board": board.id})
        assert retry_after() == 1
    assert retry_after() is None
    later = retry_after()
    assert later is not None
    assert later > 3_000


def test_an_annotator_who_asks_twice_at_once_gets_no_pair_twice(open_work: Open, shelf: Shelf) -> None:
    board = make_board(open_work, pool=20, overlap=5)
    assert len(ask(open_work, board, shelf, count=20, annotator="ben")) == 20
    given = together([lambda: ask(open_work, board, shelf, count=20, annotator="anna") for _ in range(6)])
    pairs = [(row["context"], row["left"], row["right"]) for rows in given for row in rows]
    assert len(pairs) == len(set(pairs)) == 20


def test_a_known_context_sent_by_many_at_once_is_offered_to_each(
    open_work: Open, shelf: Shelf, database: Engine
) -> None:
    board = make_board(open_work)
    asked = (AskedContext(id="new"), AskedContext(id="other"))
    given = together([lambda: ask(open_work, board, shelf, contexts=asked) for _ in range(CLIENTS)])
    assert [len(rows) for rows in given] == [2] * CLIENTS
    assert counted(database, board, "SELECT count(*) FROM contexts WHERE board_id = :board") == 2
    assert counted(database, board, "SELECT count(*) FROM offers WHERE board_id = :board") == 2 * CLIENTS


def test_one_key_at_once_is_one_draw(open_work: Open, shelf: Shelf, database: Engine) -> None:
    board = make_board(open_work, pool=100)
    given = together([lambda: ask(open_work, board, shelf, key="k", count=3) for _ in range(CLIENTS)])
    assert len(given[0]) == 3
    assert all(rows == given[0] for rows in given)
    assert counted(database, board, "SELECT count(*) FROM assignments WHERE board_id = :board") == 3


def test_a_late_answer_and_a_new_lease_never_both_win(open_work: Open, shelf: Shelf, database: Engine) -> None:
    board = make_board(open_work, pool=40)
    held = ask(open_work, board, shelf, count=40, annotator="anna")
    expire(database, board)

    def lease() -> list[Row]:
        return [row for _ in range(20) for row in ask(open_work, board, shelf, count=2, annotator="ben")]

    fates, again = together([lambda: answer(open_work, board, held), lease])
    answered = {row["context"] for row, fate in zip(held, fates, strict=True) if fate == "created"}
    released = {row["context"] for row in again}
    assert answered.isdisjoint(released)
    assert len(answered) + len(released) == 40
    assert set(fates) <= {"created", "rejected"}


def test_an_answer_waits_for_who_gives_its_lease_away(open_work: Open, shelf: Shelf, database: Engine) -> None:
    board = make_board(open_work, pool=1)
    held = ask(open_work, board, shelf, count=1)
    with database.connect() as other, ThreadPoolExecutor(1) as pool:
        other.execute(text("UPDATE assignments SET state = 'lapsed' WHERE board_id = :board"), {"board": board.id})
        fates = pool.submit(answer, open_work, board, held)
        time.sleep(0.3)
        assert not fates.done()
        other.commit()
        assert fates.result(10) == ["rejected"]
    assert counted(database, board, "SELECT count(*) FROM votes WHERE board_id = :board") == 0


def answer(open_work: Open, board: Board, rows: Sequence[Row]) -> list[str]:
    """What became of a vote for each of the assignments."""
    fates = []
    for row in rows:
        ballot = Ballot(id=uuid4(), assignment=row["id"], outcome="left")
        with open_work() as work:
            fates += [each.status for each in votes.record(work, board, [ballot], now=datetime.now(UTC))]
    return fates


def expire(database: Engine, board: Board) -> None:
    values = {"board": board.id, "past": datetime.now(UTC) - timedelta(seconds=1)}
    with database.begin() as connection:
        connection.execute(text("UPDATE assignments SET expires_at = :past WHERE board_id = :board"), values)


ASKER = """
import sys
from datetime import UTC, datetime
from threading import Thread
from app.db.engine import open_engine, open_sessions
from app.db.unit_of_work import UnitOfWork
from app.domain.acquire import AcquireDraft
from app.services.acquire import run
from app.services.loaded.shelf import Shelf

sessions = open_sessions(open_engine(sys.argv[1]))
shelf = Shelf(lambda: UnitOfWork(sessions))

def ask():
    while True:
        with UnitOfWork(sessions) as work:
            board = work.boards.find(sys.argv[2])
            run.acquire(work, board, AcquireDraft(count=3), shelf=shelf, key=None, now=datetime.now(UTC))

for _ in range(4):
    Thread(target=ask).start()
"""


def test_a_process_killed_at_work_leaves_nothing_half_done(
    open_work: Open, shelf: Shelf, database: Engine, database_url: str
) -> None:
    board = make_board(open_work, pool=3_000)
    asker = subprocess.Popen([sys.executable, "-c", ASKER, database_url, board.slug])
    offered = "SELECT count(*) FROM contexts WHERE board_id = :board AND offered"
    try:
        while not counted(database, board, offered):
            assert asker.poll() is None
            time.sleep(0.02)
        time.sleep(0.2)
    finally:
        os.kill(asker.pid, signal.SIGKILL)
        asker.wait()
    # What the server was at when its client died it may still finish.
    while counted(database, board, AT_WORK):
        time.sleep(0.05)
    first = counted(database, board, offered)
    assert 0 < first < 3_000
    rest = drain(open_work, board, shelf, clients=2, count=100)
    assert counted(database, board, HALF_DONE) == 0
    assert first + sum(map(len, rest)) >= 3_000
