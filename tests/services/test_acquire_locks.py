"""Draws beside what reads or changes their board: one waits for the other, so that none is missed or out of date."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import UTC, datetime
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from sqlalchemy import Connection, Engine, text

from app.cache.connection import open_redis
from app.cache.limits import RateLimiter
from app.db.engine import open_engine, open_sessions
from app.db.marks import Marks
from app.db.unit_of_work import UnitOfWork
from app.domain.acquire import AcquireDraft, AskedContext
from app.domain.boards import Board
from app.domain.errors import Invalid
from app.domain.items import ItemDraft
from app.domain.keys import KeyDraft
from app.services import boards, items, keys
from app.services.acquire import run
from app.services.acquire.hatch import Guest, Hatch, Works
from app.services.loaded.shelf import Shelf
from tests.conftest import RecordingQueue
from tests.faults.parts import await_truth
from tests.refitting import Bench, features_of, new_board

A_WHILE = 0.3
"""Seconds in which whoever need not wait is done."""
SEEN = text("""
SELECT (SELECT count(*) FROM contexts WHERE board_id = :board AND offered_at <= :moment),
       (SELECT count(*) FROM offers WHERE board_id = :board AND (id <= :offers OR created_at <= :moment))
""")
BLOCKED = text("""
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
""")
OF_RETIRED = text("""
SELECT count(*), count(*) FILTER (WHERE offers.created_at >= active_to) FROM assignments
JOIN offers ON offers.id = offer_id JOIN item_spans ON item_id IN (left_id, right_id)
WHERE assignments.board_id = :board AND active_to IS NOT NULL
""")
Ask = Callable[[Board, str], list[dict[str, Any]]]
"""Asks for a pair of a new context of this name."""


class Ways(NamedTuple):
    """In which a context is drawn for."""

    at_once: Ask
    in_full: Ask


@pytest.fixture
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture
def board(bench: Bench) -> Board:
    return new_board(bench, unit="context", acquisition={"mode": "one", "budget": 1.0})


@pytest.fixture
def ways(bench: Bench, database_url: str, redis_url: str) -> Iterator[Ways]:
    with bench.work() as work:
        secret = keys.create(work, KeyDraft(scopes=["acquire"]))[1]
    engine, shelf = open_engine(database_url, autocommit=True), Shelf(bench.work)
    works = Works(bench.work, lambda: UnitOfWork(open_sessions(engine)))
    hatch = Hatch(works, shelf, RateLimiter(open_redis(redis_url), per_minute=0))

    def at_once(board: Board, name: str) -> list[dict[str, Any]]:
        guest = Guest(board.slug, f"Bearer {secret}", "here")
        return rows(hatch.serve(guest, draft(name), hatch.remembered(guest)).document)

    def in_full(board: Board, name: str) -> list[dict[str, Any]]:
        with bench.work() as work:
            answer = run.acquire(work, board, draft(name), shelf=shelf, key=None, now=datetime.now(UTC))
        return rows(answer.document)

    yield Ways(at_once, in_full)
    shelf.close()
    engine.dispose()


def draft(name: str) -> AcquireDraft:
    return AcquireDraft(contexts=[AskedContext(id=name, features=features_of(1))])


def rows(document: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["assignments"]
    return found


def marks(bench: Bench, board: Board) -> Marks:
    with bench.work() as work:
        return work.gather.marks(board.id)


def held_up(connection: Connection, board: Board) -> None:
    """Keep the name `late` of a context from others until the transaction ends: a draw for it waits half done."""
    values = {"board": board.id, "name": "late"}
    insert = "INSERT INTO contexts (board_id, external_id, features, offered) VALUES (:board, :name, '{}', FALSE)"
    connection.execute(text(insert), values)


def await_blocked(bench: Bench) -> None:
    """Wait until somebody waits for a lock."""

    def waits() -> bool:
        with bench.engine.connect() as connection:
            return bool(connection.execute(BLOCKED).scalar_one())

    await_truth(waits, seconds=30)


def done(future: Future[Any]) -> bool:
    return bool(wait([future], timeout=A_WHILE).done)


@pytest.mark.parametrize("way", Ways._fields)
def test_marks_wait_for_draws_that_are_not_committed(bench: Bench, board: Board, ways: Ways, way: str) -> None:
    ask: Ask = getattr(ways, way)
    ask(board, "first")
    with ThreadPoolExecutor(2) as pool, bench.engine.connect() as other:
        held_up(other, board)
        drawn = pool.submit(ask, board, "late")
        await_blocked(bench)
        found = pool.submit(marks, bench, board)
        waited = not done(found)
        other.rollback()
        drawn.result(timeout=5)
        with bench.engine.connect() as connection:
            values = {**found.result(timeout=5)._asdict(), "board": board.id}
            later = connection.execute(SEEN, values).one()
    assert waited
    assert tuple(later) == (2, 2)


@pytest.mark.parametrize("way", Ways._fields)
def test_draws_that_waited_for_marks_are_dated_after_them(bench: Bench, board: Board, ways: Ways, way: str) -> None:
    ask: Ask = getattr(ways, way)
    ask(board, "first")
    with ThreadPoolExecutor(1) as pool:
        with bench.work() as work:
            work.boards.lock(board)
            drawn = pool.submit(ask, board, "late")
            assert not done(drawn)
            found = work.gather.marks(board.id)
        drawn.result(timeout=5)
    with bench.engine.connect() as connection:
        assert tuple(connection.execute(SEEN, {**found._asdict(), "board": board.id}).one()) == (1, 1)


def beside(bench: Bench, ask: Ask, board: Board, change: Callable[[UnitOfWork], object]) -> list[dict[str, Any]]:
    """What is drawn while a change of the board is not committed yet."""
    ask(board, uuid4().hex)
    with ThreadPoolExecutor(1) as pool, bench.work() as work:
        work.boards.lock(board)
        drawn = pool.submit(ask, board, uuid4().hex)
        assert not done(drawn)
        change(work)
        return drawn.result(timeout=5)


@pytest.mark.parametrize("way", Ways._fields)
def test_draws_wait_for_a_change_of_the_board(bench: Bench, board: Board, ways: Ways, way: str) -> None:
    def change(work: UnitOfWork) -> None:
        boards.change(work, board.slug, {"acquisition": {"lease_seconds": 1}}, queue=RecordingQueue())

    (row,) = beside(bench, getattr(ways, way), board, change)
    left = datetime.fromisoformat(row["expires_at"]) - datetime.now(UTC)
    assert left.total_seconds() <= 1


@pytest.mark.parametrize("way", Ways._fields)
def test_features_are_read_as_the_board_declares_them_now(bench: Bench, ways: Ways, way: str) -> None:
    board, ask = new_board(bench), getattr(ways, way)
    with ThreadPoolExecutor(1) as pool, bench.work() as work:
        work.boards.lock(board)
        drawn = pool.submit(ask, board, "late")
        assert not done(drawn)
        boards.change(work, board.slug, {"features": []}, queue=RecordingQueue())
        with pytest.raises(Invalid, match="lang"):
            drawn.result(timeout=5)


@pytest.mark.parametrize("way", Ways._fields)
def test_draws_wait_for_a_change_of_items(bench: Bench, board: Board, ways: Ways, way: str) -> None:
    def retire(work: UnitOfWork) -> None:
        items.put(work, board, "ada", ItemDraft(active=False))

    for _ in range(8):
        (row,) = beside(bench, getattr(ways, way), board, retire)
        assert "ada" not in (row["left"], row["right"])
        with bench.work() as work:
            items.put(work, board, "ada", ItemDraft())


@pytest.mark.parametrize("way", Ways._fields)
def test_a_change_of_items_waits_for_draws(bench: Bench, board: Board, ways: Ways, way: str) -> None:
    def retire() -> None:
        with bench.work() as work:
            items.put(work, board, "ada", ItemDraft(active=False))

    ask: Ask = getattr(ways, way)
    ask(board, "first")
    with ThreadPoolExecutor(2) as pool, bench.engine.connect() as other:
        held_up(other, board)
        drawn = pool.submit(ask, board, "late")
        await_blocked(bench)
        retired = pool.submit(retire)
        waited = not done(retired)
        other.rollback()
        retired.result(timeout=5)
        drawn.result(timeout=5)
    assert waited


@pytest.mark.parametrize("way", Ways._fields)
def test_an_item_is_retired_after_its_last_draw(bench: Bench, board: Board, ways: Ways, way: str) -> None:
    with bench.work() as work:
        work.boards.get(board.id)
        for number in range(16):
            getattr(ways, way)(board, f"c{number}")
        items.put(work, board, "ada", ItemDraft(active=False))
    with bench.engine.connect() as connection:
        drawn, late = connection.execute(OF_RETIRED, {"board": board.id}).one()
    assert drawn > late == 0
