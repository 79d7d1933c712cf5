"""Answers that were given already, kept in the process until their board changes.

An entry holds while nothing was heard of its board since the answer was begun, and while it was made, or its board's
version seen in the database, not longer than `LEASE` seconds ago (`watch.Watch` looks every few seconds, for all boards
in one statement). So a read of a kept answer asks neither the database nor Redis.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from threading import Lock

from app.api.kept import Kept
from app.db.versions import BoardVersion

Address = tuple[str, bytes]
"""Path and query string as they were sent."""

MOST_BYTES = 64 << 20
LEASE = 6.0
IDLE = 60.0
"""Seconds after which a board that nobody reads is no longer looked at."""


@dataclass(slots=True, eq=False)
class BoardState:
    """What is known of a board that somebody reads.

    Parameters
    ----------
    changed : tick of the last change that was heard.
    until : the time until which all entries hold, since the version was seen.
    read : when an entry was last asked for.
    heard : when a change was last heard of.
    version : as it was last seen in the database.
    """

    changed: int = 0
    until: float = 0.0
    read: float = 0.0
    heard: float = 0.0
    version: BoardVersion | None = None


@dataclass(frozen=True, slots=True)
class _Entry:
    kept: Kept
    state: BoardState
    began: int
    until: float
    size: int


class Warm:
    """The answers asked for last, up to a number of bytes.

    Parameters
    ----------
    most : bytes.
    clock : seconds.
    """

    def __init__(self, most: int = MOST_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._lock = Lock()
        self._size = 0
        self._entries: OrderedDict[Address, _Entry] = OrderedDict()
        self._boards: dict[int, BoardState] = {}
        self.tick = 0
        """Grows with every change that is heard: an answer begun before a change must not outlive it."""

    def find(self, address: Address) -> Kept | None:
        """The answer, while it holds."""
        entry = self._entries.get(address)
        if entry is None:
            return None
        state, now = entry.state, self._clock()
        if state.changed > entry.began or now > max(entry.until, state.until):
            return None
        state.read = now
        self._entries.move_to_end(address)
        return entry.kept

    def put(self, address: Address, kept: Kept, began: int) -> None:
        """Keep an answer that was begun at this tick, unless its board changed meanwhile."""
        size = kept.size + len(address[0]) + len(address[1])
        with self._lock:
            state = self._boards.setdefault(kept.board_id, BoardState())
            state.read = self._clock()
            if state.changed > began:
                return
            self._drop(address)
            self._entries[address] = _Entry(kept, state, began, state.read + LEASE, size)
            self._size += size
            while self._size > self._most:
                self._drop(next(iter(self._entries)))

    def forget(self, board_id: int) -> None:
        """The board changed."""
        with self._lock:
            state = self._boards.setdefault(board_id, BoardState())
            state.heard = self._clock()
            self._change(state)

    def forget_all(self) -> None:
        """Anything may have changed."""
        with self._lock:
            for state in self._boards.values():
                self._change(state)

    def confirm(self, asked: Iterable[int], seen: Mapping[int, BoardVersion], looked: float) -> None:
        """Take note of the versions that the database had at a time: others than before end what is kept.

        Parameters
        ----------
        asked : boards that were looked for; those that are not among the seen are no more.
        """
        with self._lock:
            for board_id in asked:
                state, version = self._boards.get(board_id), seen.get(board_id)
                if state is None:
                    continue
                if version is None or version != state.version:
                    self._change(state)
                state.version, state.until = version, looked + LEASE

    def read_lately(self) -> list[int]:
        """Boards to look at. What nobody has read for a while is let go."""
        ago = self._clock() - IDLE
        with self._lock:
            idle = {id(state) for state in self._boards.values() if max(state.read, state.heard) < ago}
            self._boards = {board: state for board, state in self._boards.items() if id(state) not in idle}
            for address in [address for address, entry in self._entries.items() if id(entry.state) in idle]:
                self._drop(address)
            return [board for board, state in self._boards.items() if state.read >= ago]

    def _change(self, state: BoardState) -> None:
        self.tick += 1
        state.changed = self.tick

    def _drop(self, address: Address) -> None:
        entry = self._entries.pop(address, None)
        if entry is not None:
            self._size -= entry.size
