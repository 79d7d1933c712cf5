"""Tasks in processes of this worker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from threadpoolctl import threadpool_limits

from app.embedded.processes import end_with
from app.services.refit.crew.ports import Ask, Slots, State, Thread


@dataclass(frozen=True, slots=True)
class Pool:
    """Processes that hold the state.

    Parameters
    ----------
    executor : of the processes.
    count : of them.
    """

    executor: ProcessPoolExecutor
    count: int

    def start(self, name: str, given: tuple[Any, ...]) -> Future[Any]:
        """See `Slots`."""
        return self.executor.submit(_make, name, given)


@dataclass(frozen=True, slots=True)
class Processes:
    """A crew of so many processes."""

    count: int

    @contextmanager
    def at(self, state: State) -> Iterator[Ask]:
        """See `Crew`."""
        with pool(state, self.count) as started:
            yield lambda name, *given: started.start(name, given).result


@contextmanager
def pool(state: State, count: int) -> Iterator[Pool]:
    """So many processes, which end with this one; what nobody took up when the block ends is dropped."""
    given = os.getpid(), state
    # A worker that is killed must not leave its tasks behind.
    executor = ProcessPoolExecutor(count, get_context("spawn"), initializer=_prepare, initargs=given)
    try:
        yield Pool(executor, count)
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def slots(state: State, count: int) -> Iterator[Slots]:
    """Where this process computes: processes of its own, or the very thread where one is all there may be."""
    if count == 1:
        yield Thread(state)
        return
    with pool(state, count) as started:
        yield started


_PREPARED: list[Any] = []


def _prepare(parent: int, state: State) -> None:
    end_with(parent)
    _PREPARED.append(state.maker())


def _make(name: str, given: tuple[Any, ...]) -> Any:
    with threadpool_limits(1):
        return getattr(_PREPARED[0], name)(*given)
