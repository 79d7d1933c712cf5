"""Tasks that workers share: who may claim what, what goes through the database, and who does not help."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Thread, get_ident
from uuid import UUID, uuid4

import numpy as np
import pytest
from sqlalchemy import Engine, text

from app.db.locks import Lock, lease
from app.db.tasks import LEASE
from app.domain.boards import Board
from app.services import jobs
from app.services.refit.crew import leading, packing, version
from app.services.refit.crew.duty import Duty
from app.services.refit.crew.helping import Helper
from app.services.refit.crew.leading import Workers
from app.services.refit.crew.packing import Foreign, pack, unpack
from app.services.refit.crew.version import fingerprint
from app.services.refit.games.means import Behind
from app.settings import custom_estimands
from app.stats.types import Covariates
from tests.conftest import RecordingQueue
from tests.faults.parts import await_truth
from tests.refitting import Bench, new_board


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture(scope="module")
def board(bench: Bench) -> Board:
    return new_board(bench)


@pytest.fixture
def batch(bench: Bench, board: Board) -> UUID:
    """A batch of three tasks."""
    batch = uuid4()
    with bench.work() as work:
        work.tasks.open(batch, board.id, "v")
        for number in (1, 2, 3):
            work.tasks.add(batch, number)
        work.commit()
    return batch


def rows(bench: Bench, table: str) -> int:
    with bench.work() as work:
        return int(work.session.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def test_tasks_are_claimed_once_and_again_by_the_leader_when_their_claimant_is_silent(
    bench: Bench, batch: UUID
) -> None:
    leader, helper = uuid4(), uuid4()
    with bench.work() as one, bench.work() as other:
        assert one.tasks.claim(batch, helper, 1) == [1]
        assert other.tasks.reclaim(batch, leader, 1) == [2]
        one.commit()
        other.commit()
    with bench.work() as work:
        assert work.tasks.claim(batch, helper, 5) == [3]
        assert work.tasks.reclaim(batch, leader, 5) == []
        work.session.execute(text("UPDATE tasks SET heartbeat_at = now() - INTERVAL '11 seconds'"))
        assert work.tasks.claim(batch, uuid4(), 5) == []
        assert work.tasks.make(batch, 3)
        assert work.tasks.reclaim(batch, leader, 5) == [1]
        assert not work.tasks.make(batch, 3)
        assert work.tasks.made(batch, [1, 2, 3]) == [3]


def test_a_sign_of_life_keeps_claims_and_giving_back_ends_them(bench: Bench, batch: UUID) -> None:
    leader, helper = uuid4(), uuid4()
    with bench.work() as work:
        assert work.tasks.claim(batch, helper, 2) == [1, 2]
        work.session.execute(text("UPDATE tasks SET heartbeat_at = now() - INTERVAL '11 seconds' WHERE number < 3"))
        work.tasks.beat(helper)
        assert work.tasks.reclaim(batch, leader, 1) == [3]
        work.tasks.give_back(helper)
        assert work.tasks.claim(batch, uuid4(), 5) == []
        assert work.tasks.reclaim(batch, leader, 5) == [1, 2]


@pytest.mark.usefixtures("batch")
def test_batches_go_with_the_lock_of_their_refit(bench: Bench, board: Board) -> None:
    with lease(bench.engine, Lock.REFIT, board.id), bench.work() as work:
        jobs.sweep(work, RecordingQueue())
    assert rows(bench, "tasks") == 3
    with bench.work() as work:
        jobs.sweep(work, RecordingQueue())
    assert rows(bench, "batches") == rows(bench, "tasks") == 0


def test_a_new_batch_of_a_board_ends_what_was_left_over(bench: Bench, board: Board, batch: UUID) -> None:
    with bench.work() as work:
        work.tasks.open(uuid4(), board.id, "v")
        assert not work.tasks.lasts(batch)


def test_values_come_back_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "PIECE", 1000)
    given = (
        Covariates(np.asfortranarray(np.arange(600.0).reshape(20, 30)), np.ones((1, 2, 2, 1), dtype=np.float32)),
        {"named": (None, True, 2.5, "é", b"y" * 3000)},
        Behind(1, 2, 3, 4),
    )
    pieces: dict[int, bytes] = {}
    pack(given, pieces.__setitem__)
    assert max(map(len, pieces.values())) <= 1000
    found = unpack(pieces[number] for number in range(len(pieces)))
    assert found[1:] == given[1:]
    assert found[0].x.flags.f_contiguous
    np.testing.assert_array_equal(found[0].x, given[0].x)
    assert found[0].margins.dtype == np.float32


@pytest.mark.parametrize(
    "foreign",
    [print, Path("x"), time.gmtime(0), datetime(2026, 1, 1), pack, Duty, np.array([None])],
    ids=["builtin", "path", "named tuple", "moment", "function", "class", "objects"],
)
def test_nothing_foreign_is_read(foreign: object) -> None:
    with pytest.raises(Foreign):
        unpack(iter([pickle.dumps(foreign)]))


@dataclass(frozen=True)
class Naps:
    """Tasks that say which thread made them."""

    first: int

    def maker(self) -> Naps:
        return self

    def nap(self, number: int) -> tuple[int, int]:
        time.sleep(0.15)
        return self.first + number, get_ident()

    def strict(self, number: int, ident: int) -> tuple[int, int]:
        if ident != get_ident():
            raise ValueError(f"{number} is not for others")
        return self.nap(number)


@dataclass
class Party:
    """A leader in this thread, and helpers that its messages wake in threads of their own, but for the first ones."""

    bench: Bench
    board: Board
    version: str = "v"
    busy: Duty = field(default_factory=Duty)
    lost: int = 0
    threads: list[Thread] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.helper = Helper(self.bench.work, 1, self.version, self.busy)
        self.crew = Workers(self.bench.work, self.wake, self.board.id, 1, "v", Duty())

    def wake(self, batch: UUID) -> None:
        if self.lost > 0:
            self.lost -= 1
            return
        self.threads.append(Thread(target=self.helper.serve, args=(batch,)))
        self.threads[-1].start()

    def made(self, name: str, *given: int) -> set[int]:
        """Make ten tasks, in order; the threads that did."""
        with self.crew.at(Naps(7)) as ask:
            found = [made() for made in [ask(name, number, *given) for number in range(10)]]
        for thread in self.threads:
            thread.join()
        assert [value for value, _ in found] == list(range(7, 17))
        assert [rows(self.bench, name) for name in ("batches", "tasks", "task_pieces")] == [0, 0, 0]
        return {ident for _, ident in found}


@pytest.fixture
def party(bench: Bench, board: Board, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Party]:
    monkeypatch.setattr(packing, "OURS", (__name__,))
    monkeypatch.setattr(leading, "CALL", 0.05)
    return partial(Party, bench, board)


def test_whoever_is_free_makes_tasks(party: Callable[..., Party]) -> None:
    assert len(party().made("nap")) == 2


def test_who_is_free_hears_of_tasks_at_once(party: Callable[..., Party], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leading, "CALL", 3600.0)
    assert len(party().made("nap")) == 2


def test_while_tasks_wait_whoever_is_free_later_is_called(party: Callable[..., Party]) -> None:
    assert len(party(lost=10).made("nap")) == 2


def test_another_version_does_not_help(party: Callable[..., Party]) -> None:
    assert party(version="w").made("nap") == {get_ident()}


def test_who_leads_does_not_help(party: Callable[..., Party]) -> None:
    duty = Duty()
    with duty.leading():
        assert party(busy=duty).made("nap") == {get_ident()}


def test_what_a_helper_fails_with_the_leader_makes(
    party: Callable[..., Party], caplog: pytest.LogCaptureFixture
) -> None:
    began = time.monotonic()
    assert party().made("strict", get_ident()) == {get_ident()}
    assert time.monotonic() < began + LEASE
    assert "is not for others" in caplog.text


def test_who_helps_one_helps_another_afterwards(bench: Bench, batch: UUID) -> None:
    duty, called = Duty(), uuid4()
    helper = Helper(bench.work, 1, "v", duty)
    with duty.helping():
        helper.serve(batch)
    with bench.work() as work:
        assert not work.tasks.wanted(batch)
    thread = Thread(target=helper.serve, args=(called,))
    thread.start()

    def wanted() -> bool:
        with bench.work() as work:
            return work.tasks.wanted(batch)

    await_truth(wanted, seconds=10)
    with bench.work() as work:
        work.tasks.close(batch)
        work.commit()
    thread.join()


def test_what_the_leader_fails_with_is_raised(party: Callable[..., Party], bench: Bench) -> None:
    helped = party(version="w")
    with pytest.raises(ValueError, match="3 is not for others"), helped.crew.at(Naps(7)) as ask:
        ask("strict", 3, 0)()
    assert rows(bench, "batches") == rows(bench, "tasks") == 0


def test_without_a_helper_the_state_is_not_stored(party: Callable[..., Party], bench: Bench) -> None:
    with party(version="w").crew.at(Naps(7)) as ask:
        tasks = [ask("nap", number) for number in range(3)]
        assert rows(bench, "task_pieces") == 3
        assert [made()[0] for made in tasks] == [7, 8, 9]
        assert rows(bench, "task_pieces") == 3


def test_the_same_code_and_processor_have_one_fingerprint(monkeypatch: pytest.MonkeyPatch) -> None:
    found = fingerprint(())
    assert fingerprint(()) == found
    assert fingerprint(custom_estimands("tests.own_estimands:mean_share")) != found
    monkeypatch.setattr(version, "threadpool_info", lambda: [{"architecture": "Another"}])
    assert fingerprint(()) != found
