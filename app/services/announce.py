"""Tell of new votes: at once where a board was quiet, else a few times a second, and once more after the last."""

from __future__ import annotations

import logging
from collections.abc import Callable
from time import monotonic

from app.services.one_thread import OneThread

SPACING = 0.25
"""Seconds between two messages about one board."""
LAST_WORDS = 5.0
"""Seconds for what is still to be told when the process ends."""

log = logging.getLogger(__name__)


class Announcer(OneThread):
    """Tells listeners and the worker of boards with new votes, from a thread of its own: no writer waits for Redis.

    Parameters
    ----------
    listeners : are told the numbers of boards, one after the other.
    spacing : seconds between two messages about one board.
    """

    def __init__(self, *listeners: Callable[[int], None], spacing: float = SPACING) -> None:
        super().__init__("announcer", last_words=LAST_WORDS)
        self._listeners = listeners
        self._spacing = spacing
        self._due: dict[int, float] = {}
        self._told: dict[int, float] = {}

    def votes(self, board_id: int) -> None:
        """New votes of the board are durable."""
        with self._changed:
            if board_id in self._due:
                return
            self._due[board_id] = self._told.get(board_id, 0.0) + self._spacing
            self._notify()

    def _run(self) -> None:
        while boards := self._next():
            for board_id in boards:
                self._tell(board_id)

    def _next(self) -> list[int]:
        """The boards whose time has come, as soon as there are some; none once all is told after the end."""
        with self._changed:
            while True:
                now = monotonic()
                ready = [board for board, at in self._due.items() if at <= now or self._closed]
                if ready or self._closed:
                    break
                self._changed.wait(min(self._due.values()) - now if self._due else None)
            for board in ready:
                del self._due[board]
            # Whatever was told long ago makes nobody wait.
            self._told = {board: at for board, at in self._told.items() if at > now - self._spacing}
            self._told.update(dict.fromkeys(ready, now))
            return ready

    def _tell(self, board_id: int) -> None:
        for listener in self._listeners:
            try:
                listener(board_id)
            except Exception:
                log.exception("new votes of board %d were not told", board_id)
