"""The policies in force: who waits for a load, who does not, and what happens where one fails."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import MagicMock
from uuid import UUID, uuid4

import numpy as np
import pytest

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Acquisition
from app.services.loaded.advisor import Advisor
from app.services.loaded.models import Models
from app.services.loaded.routes import Routes
from app.services.loaded.shelf import Shelf, Shelved
from app.services.refit.games.contest import Contest
from app.services.refit.games.router import Router
from app.services.refit.policy import Plan
from app.stats.gars import BradleyTerry
from app.stats.types import Rule

Loaded = tuple[UUID | None, Shelved]


def shelved(snapshot_id: UUID, size: int = 1) -> Shelved:
    plan = Plan((), Acquisition(), np.zeros(0), np.zeros((0, 0)), 0.0, 0, 0, {})
    models, rule = Models(None, [], None, 2, 0), Rule(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    contest = Contest(np.arange(2), np.full(1, 0.5), np.array([1.0, -1.0]))
    router = Router(("a", "b"), 2, 0, contest, MagicMock(), None)
    return Shelved(Advisor(snapshot_id, plan, BradleyTerry(), rule, models), Routes(snapshot_id, router, models), size)


class Store:
    """Snapshots by board, read as slowly and as badly as a test wants it."""

    def __init__(self) -> None:
        self.newest: dict[int, tuple[UUID, Shelved]] = {}
        self.reads: list[tuple[int, str]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.broken = False

    def publish(self, board_id: int, size: int = 1) -> UUID:
        snapshot_id = uuid4()
        self.newest[board_id] = snapshot_id, shelved(snapshot_id, size)
        return snapshot_id

    def load(self, work: UnitOfWork, board_id: int, known: UUID | None) -> Loaded:  # noqa: ARG002 - nothing to read
        self.reads.append((board_id, threading.current_thread().name))
        found = self.newest[board_id]
        assert self.gate.wait(10)
        if self.broken:
            raise RuntimeError("no such artifact")
        return found


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def make_shelf(store: Store) -> Iterator[Callable[..., Shelf]]:
    made: list[Shelf] = []

    def make(**options: Any) -> Shelf:
        made.append(Shelf(MagicMock(), load=store.load, **options))
        return made[-1]

    yield make
    store.gate.set()
    for shelf in made:
        shelf.close()


def snapshot(found: Advisor | Routes | None) -> UUID | None:
    return None if found is None else found.snapshot_id


def settle(shelf: Shelf) -> None:
    """Wait for what is being loaded."""
    for place in list(shelf._places.values()):
        if place.loading is not None:
            place.loading.result(10)


def test_the_first_requests_wait_for_one_load(make_shelf: Callable[..., Shelf], store: Store) -> None:
    shelf, first = make_shelf(), store.publish(1)
    store.gate.clear()
    answers: list[UUID | None] = []
    askers = [threading.Thread(target=lambda: answers.append(snapshot(shelf.advisor(1, first)))) for _ in range(8)]
    for asker in askers:
        asker.start()
    assert answers == []
    store.gate.set()
    for asker in askers:
        asker.join(10)
    assert answers == [first] * 8
    assert len(store.reads) == 1


def test_the_older_policy_answers_while_the_newer_is_loaded(make_shelf: Callable[..., Shelf], store: Store) -> None:
    shelf, first = make_shelf(), store.publish(1)
    assert snapshot(shelf.advisor(1, first)) == first
    store.gate.clear()
    second = store.publish(1)
    assert [snapshot(shelf.advisor(1, second)) for _ in range(3)] == [first] * 3
    store.gate.set()
    settle(shelf)
    assert snapshot(shelf.advisor(1, second)) == second
    # A request that read the older id before changes nothing.
    assert snapshot(shelf.advisor(1, first)) == second
    assert {name.rpartition("_")[0] for _, name in store.reads} == {"policy-loader"}


def test_who_wins_where_is_waited_for(make_shelf: Callable[..., Shelf], store: Store) -> None:
    shelf, first = make_shelf(), store.publish(1)
    assert snapshot(shelf.routes(1, first)) == first
    store.gate.clear()
    second = store.publish(1)
    answers: list[UUID | None] = []
    asker = threading.Thread(target=lambda: answers.append(snapshot(shelf.routes(1, second))))
    asker.start()
    assert snapshot(shelf.advisor(1, second)) == first
    assert answers == []
    store.gate.set()
    asker.join(10)
    assert answers == [second]
    assert shelf.routes(1, None) is None


def test_a_failed_load_is_not_tried_at_every_request(
    make_shelf: Callable[..., Shelf], store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    shelf, first = make_shelf(), store.publish(1)
    store.broken = True
    with caplog.at_level(logging.CRITICAL, "app.services.loaded.shelf"):
        assert [shelf.advisor(1, first) for _ in range(5)] == [None] * 5
    assert len(store.reads) == 1


def test_a_failed_load_is_tried_again_and_costs_nobody_the_older_policy(
    make_shelf: Callable[..., Shelf], store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    shelf, first = make_shelf(rest=0.0), store.publish(1)
    assert snapshot(shelf.advisor(1, first)) == first
    second, store.broken = store.publish(1), True
    with caplog.at_level(logging.CRITICAL, "app.services.loaded.shelf"):
        assert snapshot(shelf.advisor(1, second)) == first
        settle(shelf)
    assert snapshot(shelf.advisor(1, second)) == first
    settle(shelf)
    store.broken = False
    shelf.advisor(1, second)
    settle(shelf)
    assert snapshot(shelf.advisor(1, second)) == second


def test_the_boards_used_last_stay(make_shelf: Callable[..., Shelf], store: Store) -> None:
    shelf = make_shelf(kept_bytes=20)
    ids = {board: store.publish(board, size=10) for board in (1, 2, 3)}
    for board in (1, 2, 1, 3):
        shelf.advisor(board, ids[board])
    assert [board for board, _ in store.reads] == [1, 2, 3]
    shelf.advisor(1, ids[1])
    shelf.advisor(2, ids[2])
    assert [board for board, _ in store.reads] == [1, 2, 3, 2]
    huge = store.publish(4, size=100)
    assert snapshot(shelf.advisor(4, huge)) == huge
    assert snapshot(shelf.advisor(4, huge)) == huge
    assert [board for board, _ in store.reads] == [1, 2, 3, 2, 4]
