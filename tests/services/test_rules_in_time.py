"""Rules about votes that come while a refit reads: in it, or due for the next one, never lost in between."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine, text

from app.domain.boards import DRAFT, Board
from app.domain.exclusions import ExclusionDraft
from app.domain.items import ItemDraft
from app.domain.parsing import parse
from app.services import boards, exclusions, items, votes
from tests.refitting import Bench, ballots

ITEMS = ("ada", "bell", "curie")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture
def board(bench: Bench) -> Board:
    with bench.work() as work:
        made = boards.create(work, parse(DRAFT, {"slug": f"b-{uuid4().hex}", "refit": {"seconds": 60}}))
    for name in ITEMS:
        with bench.work() as work:
            items.put(work, made, name, ItemDraft())
    sent = [vote | {"voter": f"v{n % 4}"} for n, vote in enumerate(ballots(ITEMS, 80, seed=1))]
    with bench.work() as work:
        votes.record(work, made, votes.read_ballots(sent), now=datetime.now(UTC))
    return made


def exclude(bench: Bench, board: Board) -> int:
    with bench.work() as work:
        return exclusions.add(work, board, ExclusionDraft(reason="bot", voter="v1")).exclusion.id


def age(bench: Bench, table: str, change: str, board: Board) -> None:
    """Change what no test can wait for."""
    with bench.engine.begin() as connection:
        connection.execute(text(f"UPDATE {table} SET {change} WHERE board_id = :board"), {"board": board.id})


def due(bench: Bench, board: Board) -> bool:
    with bench.work() as work:
        return board.id in work.jobs.due(attempts=5)


def refit_with(bench: Bench, board: Board, meanwhile: Callable[[], Any]) -> dict[str, Any]:
    """A refit between whose marks and whose reading something happens; what it says of excluded votes."""
    bench.refit_while(board.slug, meanwhile)
    return excluded(bench, board)


def excluded(bench: Bench, board: Board) -> dict[str, Any]:
    with bench.work() as work:
        snapshot = work.snapshots.newest(board.id)
        assert snapshot is not None
        counts: dict[str, Any] = snapshot.summary["votes_excluded"]
        return counts


def test_a_rule_that_comes_after_the_marks_is_due_and_in_the_next_refit(bench: Bench, board: Board) -> None:
    assert refit_with(bench, board, lambda: exclude(bench, board)) == {}
    assert not due(bench, board)
    age(bench, "exclusions", "created_at = created_at - INTERVAL '1 hour'", board)
    assert due(bench, board)
    bench.refit(board.slug)
    assert excluded(bench, board) == {"bot": 20}
    assert not due(bench, board)


def test_a_rule_lifted_after_the_marks_is_lifted_for_the_next_refit(bench: Bench, board: Board) -> None:
    rule = exclude(bench, board)

    def lift() -> None:
        with bench.work() as work:
            exclusions.lift(work, board, rule)

    assert refit_with(bench, board, lift) == {"bot": 20}
    bench.refit(board.slug)
    assert excluded(bench, board) == {}


def test_a_rule_that_a_refit_has_seen_is_not_due_whatever_its_date(bench: Bench, board: Board) -> None:
    exclude(bench, board)
    bench.refit(board.slug)
    assert excluded(bench, board) == {"bot": 20}
    age(bench, "exclusions", "created_at = created_at - INTERVAL '1 hour'", board)
    assert not due(bench, board)


def test_a_refit_waits_for_a_rule_on_its_way(bench: Bench, board: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    work, written = bench.work(), Event()
    commit = work.commit

    def late() -> None:
        written.set()
        time.sleep(0.5)
        commit()

    monkeypatch.setattr(work, "commit", late)

    def add() -> None:
        with work:
            exclusions.add(work, board, ExclusionDraft(reason="bot", voter="v1"))

    thread = Thread(target=add)
    thread.start()
    assert written.wait(30)
    bench.refit(board.slug)
    thread.join()
    assert excluded(bench, board) == {"bot": 20}
