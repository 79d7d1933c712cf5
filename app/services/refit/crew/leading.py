"""A refit whose tasks any worker may take: rows in the database that this worker works off too.

With nobody else there it makes them all, and the state they are made of is never stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any
from uuid import UUID, uuid4

from app.db.tasks import GIVEN, MADE, STATE
from app.db.unit_of_work import UnitOfWork
from app.services.refit.crew.duty import Duty
from app.services.refit.crew.meanwhile import meanwhile
from app.services.refit.crew.packing import pack, unpack
from app.services.refit.crew.ports import Ask, Slots, State
from app.services.refit.crew.processes import slots

LOOK = 0.1
"""Seconds between two looks at what others want or have made."""
CALL = 1.0
"""Seconds between two messages while tasks wait: workers that are busy throw them away."""
CALLS = 16
"""Tasks with a message of their own: who is woken by one makes all tasks that he finds."""

OpenWork = Callable[[], UnitOfWork]
Wake = Callable[[UUID], None]
"""Tells some worker of a batch with tasks to be made."""


@dataclass(frozen=True, slots=True)
class Workers:
    """A crew of this worker and of all that are free.

    Parameters
    ----------
    open_work : opens a transaction.
    wake : tells the others.
    board_id : whose refit lock this worker holds.
    processes : tasks that this worker computes side by side.
    version : of those who compute the same numbers.
    duty : what this worker is busy with.
    """

    open_work: OpenWork
    wake: Wake
    board_id: int
    processes: int
    version: str
    duty: Duty

    @contextmanager
    def at(self, state: State) -> Iterator[Ask]:
        """See `Crew`."""
        batch = uuid4()
        with self.duty.leading(), slots(state, self.processes) as own:
            with self.open_work() as work:
                work.tasks.open(batch, self.board_id, self.version)
                work.commit()
            try:
                leader = Leader(self.open_work, partial(self.wake, batch), batch, own)
                with meanwhile(partial(leader.store, state), every=LOOK), meanwhile(leader.call, every=CALL):
                    yield leader.ask
            finally:
                with self.open_work() as work:
                    work.tasks.close(batch)
                    work.commit()


class Leader:
    """Asks for the tasks of a batch, makes those that nobody else takes, and collects what is made.

    Parameters
    ----------
    open_work : opens a transaction.
    wake : tells other workers.
    batch : the tasks'.
    own : where this worker computes.
    """

    def __init__(self, open_work: OpenWork, wake: Callable[[], None], batch: UUID, own: Slots) -> None:
        self._open_work, self._wake, self._batch, self._own = open_work, wake, batch, own
        self._name = uuid4()
        self._numbers = count(1)
        self._given: dict[int, tuple[str, tuple[Any, ...]]] = {}
        self._running: dict[int, Future[Any]] = {}
        self._made: dict[int, Future[Any]] = {}

    def ask(self, name: str, *given: Any) -> Callable[[], Any]:
        """Open a task."""
        number = next(self._numbers)
        self._given[number] = name, given
        with self._open_work() as work:
            work.tasks.add(self._batch, number)
            pack((name, given), partial(work.tasks.put, self._batch, GIVEN, number))
            if number <= CALLS:
                work.after_commit(self._wake)
            work.commit()
        return partial(self._await, number)

    def store(self, state: State) -> None:
        """Store what tasks are made of, where somebody waits for it."""
        with self._open_work() as work:
            if work.tasks.wanted(self._batch):
                pack(state, partial(work.tasks.put, self._batch, STATE, 0))
                work.tasks.stored(self._batch)
                work.commit()

    def call(self) -> None:
        """Call for others while there is something for them."""
        with self._open_work() as work:
            waiting = work.tasks.waiting(self._batch)
        if waiting:
            self._wake()

    def _await(self, number: int) -> Any:
        while number not in self._made:
            self._take()
            self._finish()
            self._collect()
        return self._made.pop(number).result()

    def _take(self) -> None:
        """Begin with as many tasks as there is room for."""
        room = self._own.count - len(self._running)
        if not room or len(self._running) == len(self._given):
            return
        with self._open_work() as work:
            taken = work.tasks.reclaim(self._batch, self._name, room)
            work.commit()
        for number in taken:
            self._running[number] = self._own.start(*self._given[number])

    def _finish(self) -> None:
        """Close the tasks that are made here; wait a moment for one."""
        if not self._running:
            time.sleep(LOOK)
            return
        wait(self._running.values(), timeout=LOOK, return_when=FIRST_COMPLETED)
        done = [number for number, future in self._running.items() if future.done()]
        if done:
            with self._open_work() as work:
                for number in done:
                    work.tasks.make(self._batch, number)
                work.commit()
        for number in done:
            self._keep(number, self._running.pop(number))

    def _collect(self) -> None:
        """Take what others have made."""
        theirs = [number for number in self._given if number not in self._running]
        if not theirs:
            return
        with self._open_work() as work:
            for number in work.tasks.made(self._batch, theirs):
                future: Future[Any] = Future()
                future.set_result(unpack(work.tasks.pieces(self._batch, MADE, number)))
                self._keep(number, future)

    def _keep(self, number: int, future: Future[Any]) -> None:
        del self._given[number]
        self._made[number] = future
