"""An end to waits that last too long."""

from __future__ import annotations

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable

from app.services.ballot_box.casts import Answer, Fate


class Patience:
    """Ends waits of votes by one timer for all: one for each would cost as much as what is waited for.

    Parameters
    ----------
    seconds : that each may last.
    ending : what those are told that lasted too long.
    """

    def __init__(self, seconds: float, ending: Callable[[], Fate]) -> None:
        self._seconds = seconds
        self._ending = ending
        self._loop: AbstractEventLoop | None = None
        self._waits: deque[tuple[float, Answer]] = deque()
        self._looking = False

    def watch(self, wait: Answer) -> None:
        """End the wait when its time has come."""
        loop = wait.get_loop()
        if loop is not self._loop:
            # Those of a loop that has ended wait for nothing.
            self._loop, self._waits, self._looking = loop, deque(), False
        self._forget_ended()
        if not self._looking:
            self._looking = True
            loop.call_later(self._seconds, self._look, loop)
        self._waits.append((loop.time() + self._seconds, wait))

    def _look(self, loop: AbstractEventLoop) -> None:
        if loop is not self._loop:
            return
        now = loop.time()
        while self._waits and self._waits[0][0] <= now:
            _, wait = self._waits.popleft()
            if not wait.done():
                wait.set_result(self._ending())
        self._forget_ended()
        self._looking = bool(self._waits)
        if self._looking:
            loop.call_later(self._waits[0][0] - now, self._look, loop)

    def _forget_ended(self) -> None:
        while self._waits and self._waits[0][1].done():
            self._waits.popleft()
