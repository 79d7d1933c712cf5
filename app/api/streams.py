"""Open streams: who listens to which board, and what each was told last.

An event says what is the case now, not what changed: a listener who missed some is told one current event.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import orjson

from app.db.versions import BoardVersion
from app.domain.errors import Unavailable

WAITING = 32
"""Events that wait for a slow listener; the oldest are dropped."""
MOST = 10_000
"""Streams of one process."""
HEARTBEAT = b": still here\n\n"
OPENING = b"retry: 2000\n\n"
"""Milliseconds after which a browser connects again."""


class Stream:
    """One listener.

    Parameters
    ----------
    board_id : listened to.
    key_id : of the key that may read the board; None where the public may.
    """

    def __init__(self, board_id: int, key_id: int | None) -> None:
        self.board_id = board_id
        self.key_id = key_id
        self.told: str | None = None
        self._chunks: deque[bytes] = deque(maxlen=WAITING)
        self._there = asyncio.Event()
        self._over = False

    def push(self, chunk: bytes) -> None:
        """Send on as soon as the listener takes it, unless the stream was ended."""
        if self._over:
            return
        self._chunks.append(chunk)
        self._there.set()

    def beat(self) -> None:
        """Show that the stream is open, unless something waits that shows it."""
        if not self._chunks:
            self.push(HEARTBEAT)

    def end(self) -> None:
        """Send what waits, then nothing more."""
        self._over = True
        self._there.set()

    async def chunks(self) -> AsyncIterator[bytes]:
        """What is pushed, until the stream ends."""
        while True:
            while self._chunks:
                yield self._chunks.popleft()
            if self._over:
                return
            self._there.clear()
            await self._there.wait()


class Streams:
    """All open streams of a process; used from the event loop alone."""

    def __init__(self) -> None:
        self._open: dict[int, set[Stream]] = {}
        self._refitted: dict[int, str | None] = {}
        self._closed = False
        self.size = 0

    def join(self, version: BoardVersion, key_id: int | None, last_event: str | None) -> Stream:
        """Open a stream; it begins with the current event unless that was the last one received."""
        if self.size >= MOST or self._closed:
            raise Unavailable("streams-full", "no more streams can be opened here")
        stream = Stream(version.board_id, key_id)
        listeners = self._open.setdefault(version.board_id, set())
        if not listeners:
            self._refitted[version.board_id] = _text(version.snapshot_id)
        listeners.add(stream)
        self.size += 1
        stream.push(OPENING)
        stream.told = last_event
        _tell(stream, event_id(version), _rankings(version))
        return stream

    def leave(self, stream: Stream) -> None:
        """Free a stream."""
        listeners = self._open.get(stream.board_id, set())
        if stream in listeners:
            listeners.remove(stream)
            self.size -= 1
        if not listeners:
            self._open.pop(stream.board_id, None)
            self._refitted.pop(stream.board_id, None)

    def boards(self) -> list[int]:
        """Boards that somebody listens to."""
        return list(self._open)

    def keys(self) -> list[int]:
        """Keys that opened streams."""
        return list({stream.key_id for stream in self._all() if stream.key_id is not None})

    def tell(self, version: BoardVersion, refits: Sequence[Mapping[str, Any]] = ()) -> None:
        """Tell a board's listeners what they have not been told, then of refits that ended.

        A new snapshot is told of as a refit also where no news of the refit came through.
        """
        name, event = event_id(version), _rankings(version)
        listeners = self._open.get(version.board_id, set())
        for stream in listeners:
            if not version.public and stream.key_id is None:
                stream.end()
            _tell(stream, name, event)
        for refit in self._untold(version, refits):
            written = _event("refit", name, {"board": version.slug, **refit})
            for stream in listeners:
                stream.push(written)

    def end(self, board_id: int) -> None:
        """The board is no more."""
        for stream in self._open.get(board_id, ()):
            stream.end()

    def confirm_keys(self, alive: Iterable[int], asked: Iterable[int]) -> None:
        """End the streams of those keys that were asked about and are not good any more."""
        revoked = set(asked) - set(alive)
        for stream in self._all():
            if stream.key_id in revoked:
                stream.end()

    def beat(self) -> None:
        """Let all listeners, and what lies between, know that the streams are open."""
        for stream in self._all():
            stream.beat()

    def close(self) -> None:
        """The process ends."""
        self._closed = True
        for stream in self._all():
            stream.end()

    def _all(self) -> list[Stream]:
        return [stream for listeners in self._open.values() for stream in listeners]

    def _untold(self, version: BoardVersion, refits: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        snapshot, before = _text(version.snapshot_id), self._refitted.get(version.board_id)
        self._refitted[version.board_id] = snapshot
        told = {refit.get("snapshot") for refit in refits}
        if version.board_id not in self._open or snapshot == before or snapshot in told:
            return list(refits)
        return [*refits, {"job": None, "state": "succeeded", "snapshot": snapshot}]


def event_id(version: BoardVersion) -> str:
    """The name of what is the case: equal as long as no score moved."""
    return f"{version.snapshot_id or 'none'}.{version.live}.{version.updated_at.timestamp():.6f}"


def _tell(stream: Stream, name: str, event: bytes) -> None:
    if stream.told != name:
        stream.told = name
        stream.push(event)


def _rankings(version: BoardVersion) -> bytes:
    scores = {"snapshot": version.snapshot_id, "version": version.live, "votes_through": version.votes_through}
    return _event("rankings", event_id(version), {"board": version.slug, **scores})


def _event(kind: str, name: str, data: Mapping[str, Any]) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (name.encode(), kind.encode(), orjson.dumps(data))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
