"""What every crew is: somebody to ask for tasks by name, once it knows the state that they are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Protocol

Ask = Callable[..., Callable[[], Any]]
"""Asks for a task by name, with its arguments; what comes back waits for it and returns what was made."""


class State(Protocol):
    """What the tasks of one stage of a refit are made of: a plain dataclass that goes from process to process."""

    def maker(self) -> Any:
        """An object with a method for each task; it may keep what several tasks need."""
        ...


class Crew(Protocol):
    """Somebody to ask. Whoever it is, and however many: every task gives the same, to the bit."""

    def at(self, state: State) -> AbstractContextManager[Ask]:
        """Whom to ask for tasks of a stage, until the block ends."""
        ...


class Slots(Protocol):
    """Where a process computes tasks: so many at a time."""

    @property
    def count(self) -> int:
        """How many at a time."""
        ...

    def start(self, name: str, given: tuple[Any, ...]) -> Future[Any]:
        """Begin with a task."""
        ...


class InTurn:
    """One task after the other, each when it is waited for."""

    @contextmanager
    def at(self, state: State) -> Iterator[Ask]:
        """See `Crew`."""
        maker = state.maker()
        yield lambda name, *given: partial(getattr(maker, name), *given)


class Thread:
    """This very thread: a task is done when `start` returns."""

    count = 1

    def __init__(self, state: State) -> None:
        self._maker = state.maker()

    def start(self, name: str, given: tuple[Any, ...]) -> Future[Any]:
        """See `Slots`."""
        future: Future[Any] = Future()
        try:
            future.set_result(getattr(self._maker, name)(*given))
        except Exception as error:
            future.set_exception(error)
        return future


IN_TURN = InTurn()
