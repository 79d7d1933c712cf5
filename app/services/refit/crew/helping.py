"""Work on tasks of refits that other workers lead."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from app.db.tasks import GIVEN, MADE, STATE
from app.db.unit_of_work import UnitOfWork
from app.services.refit.crew.duty import Duty
from app.services.refit.crew.leading import LOOK
from app.services.refit.crew.meanwhile import meanwhile
from app.services.refit.crew.packing import pack, unpack
from app.services.refit.crew.ports import Slots, State
from app.services.refit.crew.processes import slots

BEAT = 1.0
"""Seconds between two signs of life, a tenth of a lease."""
LINGER = 5.0
"""Seconds for which a state is kept without a task to be made of it."""
PATIENCE = 120.0
"""Seconds after which a state that was asked for is given up."""

OpenWork = Callable[[], UnitOfWork]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Helper:
    """Helps the leaders of refits.

    Parameters
    ----------
    open_work : opens a transaction.
    processes : tasks computed side by side.
    version : of those who compute the same numbers.
    duty : what this worker is busy with: who leads a refit has no time.
    """

    open_work: OpenWork
    processes: int
    version: str
    duty: Duty

    def serve(self, batch: UUID) -> None:
        """Make tasks of a batch while there are any, unless the worker is busy; whom it helps already comes first."""
        with self.duty.helping() as alone:
            if not alone:
                self.duty.called = batch
                return
            called: UUID | None = batch
            while called is not None:
                self._serve(called)
                called, self.duty.called = self.duty.called, None

    def _serve(self, batch: UUID) -> None:
        state = self._state(batch)
        if state is not None:
            self._help(batch, state)

    def _state(self, batch: UUID) -> State | None:
        """What the tasks are made of, once it is stored; None where there is nothing to help with."""
        late = time.monotonic() + PATIENCE
        while self.duty.free and time.monotonic() < late:
            with self.open_work() as work:
                stored = work.tasks.want(batch, self.version)
                work.commit()
                if stored is None:
                    return None
                if stored:
                    return _read(work.tasks.pieces(batch, STATE, 0))
            time.sleep(LOOK)
        return None

    def _help(self, batch: UUID, state: State) -> None:
        with slots(state, self.processes) as own:
            member = Member(self.open_work, batch, own, self.duty)
            with meanwhile(member.beat, every=BEAT):
                made = member.work()
        logger.info("made %s tasks of batch %s", made, batch)


def _read(pieces: Iterator[bytes]) -> State | None:
    """The state of a batch; None where the batch ended while it was read."""
    try:
        state: State = unpack(pieces)
    except EOFError:
        return None
    return state


class Member:
    """Makes tasks of one batch.

    Parameters
    ----------
    open_work : opens a transaction.
    batch : the tasks'.
    own : where this worker computes.
    duty : no task is begun once the worker leads a refit.
    """

    def __init__(self, open_work: OpenWork, batch: UUID, own: Slots, duty: Duty) -> None:
        self._open_work, self._batch, self._own, self._duty = open_work, batch, own, duty
        self._name = uuid4()
        self._running: dict[int, Future[Any]] = {}

    def beat(self) -> None:
        """Give a sign of life."""
        with self._open_work() as work:
            work.tasks.beat(self._name)
            work.commit()

    def work(self) -> int:
        """Make tasks until none came for a while: how many. What fails is the leader's to try, and to tell of."""
        made, until = 0, time.monotonic() + LINGER
        try:
            while self._running or (time.monotonic() < until and self._lasts()):
                self._take()
                if self._running:
                    made += self._finish()
                    until = time.monotonic() + LINGER
                else:
                    time.sleep(LOOK)
        except Exception:
            logger.exception("helping with batch %s failed", self._batch)
        self._give_back()
        return made

    def _lasts(self) -> bool:
        with self._open_work() as work:
            return self._duty.free and work.tasks.lasts(self._batch)

    def _take(self) -> None:
        """Begin with as many tasks as there is room for."""
        room = self._own.count - len(self._running)
        if not room or not self._duty.free:
            return
        with self._open_work() as work:
            taken = work.tasks.claim(self._batch, self._name, room)
            work.commit()
            given = {number: unpack(work.tasks.pieces(self._batch, GIVEN, number)) for number in taken}
        for number, (name, arguments) in given.items():
            self._running[number] = self._own.start(name, arguments)

    def _finish(self) -> int:
        """Store what has been made, and wait a moment for it: how many."""
        wait(self._running.values(), timeout=LOOK, return_when=FIRST_COMPLETED)
        done = [number for number, future in self._running.items() if future.done()]
        return sum(self._store(number, self._running.pop(number).result()) for number in done)

    def _store(self, number: int, made: Any) -> bool:
        """Whether it was still missing."""
        with self._open_work() as work:
            missing = work.tasks.make(self._batch, number)
            if missing:
                pack(made, partial(work.tasks.put, self._batch, MADE, number))
            work.commit()
        return missing

    def _give_back(self) -> None:
        with self._open_work() as work:
            work.tasks.give_back(self._name)
            work.commit()
