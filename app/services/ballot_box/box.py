"""The queue of waiting votes and the thread that has them committed: while one group is written, the next one forms."""

from __future__ import annotations

import contextlib
import logging
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from time import sleep

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.db.locks import is_blocked
from app.domain.errors import Unavailable
from app.services.ballot_box.casts import Cast, Failed, Fate
from app.services.one_thread import OneThread

Write = Callable[[Sequence[Cast]], Sequence[Fate | None]]

LARGEST = 512
"""Votes that are written together."""
FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
"""Seconds before a database that went away is tried again."""
LONGEST_HOLD = 0.1
"""Seconds for which a group waits for another writer, as for a long batch on a board that counts votes per voter."""
LAST_WORDS = 30.0
"""Seconds for the votes that still wait when the process ends."""
AWAY = (OperationalError, InterfaceError, PoolTimeout)

log = logging.getLogger(__name__)


def away() -> Unavailable:
    """What is said when a vote waited too long; it may be stored all the same."""
    return Unavailable("database-unavailable", "the database does not answer")


class BallotBox(OneThread):
    """Takes votes in from event loops and answers each one on its loop after its commit.

    Parameters
    ----------
    write : commits a group, or some of it, and is called again for votes without a fate; raises what the driver raises
        where the connection is lost, and may then be called again too.
    most : votes that may wait.
    most_bytes : bytes of their requests, and of those being written; alone a vote may be larger.
    """

    def __init__(self, write: Write, *, most: int, most_bytes: int) -> None:
        super().__init__("ballot-box", last_words=LAST_WORDS)
        self._write = write
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._written = 0
        self._waiting: deque[Cast] = deque()

    def put(self, cast: Cast) -> None:
        """Let the vote wait for the next group; refused where too many wait."""
        with self._changed:
            if self._closed or len(self._waiting) >= self._most or 0 < self._bytes > self._most_bytes - cast.size:
                raise Unavailable("too-many-votes", "more votes wait than the database takes")
            self._waiting.append(cast)
            self._bytes += cast.size
            self._notify()

    def _run(self) -> None:
        while group := self._next():
            self._see_through(group)
            with self._changed:
                self._bytes -= sum(cast.size for cast in group)

    def _next(self) -> list[Cast]:
        """Votes that wait, as soon as there are some; none once the box is closed and empty.

        While one half of those who vote at a time is written, the other half is answered, and sends its next votes.
        Without the limit all but the first one would wait for each other, in turn with that one.
        """
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            half = (len(self._waiting) + self._written + 1) // 2
            self._written = min(LARGEST, half, len(self._waiting))
            return [self._waiting.popleft() for _ in range(self._written)]

    def _see_through(self, group: Sequence[Cast]) -> None:
        """Try until the group is written, or nobody waits for it."""
        pause = FIRST_PAUSE
        while group := [cast for cast in group if not cast.abandoned]:
            try:
                fates = self._write(group)
            except AWAY as error:
                if isinstance(error, OperationalError) and is_blocked(error):
                    self._see_boards_apart(group)
                    return
                log.warning("%d votes wait for the database: %s", len(group), error)
                sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            except Exception as error:
                self._see_apart(group, error)
                return
            else:
                told = list(zip(group, fates, strict=True))
                _deliver((cast, fate) for cast, fate in told if fate is not None)
                group = [cast for cast, fate in told if fate is None]

    def _see_boards_apart(self, group: Sequence[Cast]) -> None:
        """No board waits for what holds up another: the votes of the one that is held up go back into the queue."""
        boards: defaultdict[str, list[Cast]] = defaultdict(list)
        for cast in group:
            boards[cast.slug].append(cast)
        if len(boards) > 1:
            for votes in boards.values():
                self._see_through(votes)
            return
        with self._changed:
            self._waiting.extend(group)
            self._bytes += sum(cast.size for cast in group)

    def _see_apart(self, group: Sequence[Cast], error: Exception) -> None:
        """No vote suffers from a neighbour: each one on its own, and the one at fault has failed."""
        if len(group) > 1:
            log.warning("%d votes could not be written together: %s", len(group), error)
            for cast in group:
                self._see_through([cast])
            return
        log.error("a vote could not be written", exc_info=error)
        _deliver([(group[0], Failed(error))])


def _deliver(fates: Iterable[tuple[Cast, Fate]]) -> None:
    for loop, told in groupby(fates, key=lambda each: each[0].loop):
        # A loop that has ended waits for nothing.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_answer, list(told))


def _answer(fates: Iterable[tuple[Cast, Fate]]) -> None:
    for cast, fate in fates:
        if not cast.answer.done():
            cast.answer.set_result(fate)
