"""Keys that were good a moment ago, so that readers of kept answers need not be looked up again.

A revoked key is forgotten when the news comes, and at the latest when `watch.Watch` looks next. A key is looked up in
full once a minute, which also writes down that it is in use.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock

from app.domain.keys import Caller

MOST = 10_000
LEASE = 6.0
LONGEST = 60.0


@dataclass(slots=True)
class _Known:
    caller: Caller
    since: float
    until: float


class KnownKeys:
    """Callers by what they send; secrets are not held, only digests."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._known: OrderedDict[bytes, _Known] = OrderedDict()
        self.tick = 0
        """Grows when keys are forgotten: one that was looked up before that is not taken in after it."""

    def find(self, authorization: bytes) -> Caller | None:
        """The caller, while the key is known to be good."""
        known, now = self._known.get(sha256(authorization).digest()), self._clock()
        return None if known is None or now > min(known.until, known.since + LONGEST) else known.caller

    def put(self, authorization: bytes, caller: Caller, began: int) -> None:
        """Remember a key that was looked up in a request begun at this tick."""
        name, now = sha256(authorization).digest(), self._clock()
        with self._lock:
            if began != self.tick:
                return
            known = self._known.get(name)
            since = now if known is None or now > known.since + LONGEST else known.since
            self._known[name] = _Known(caller, since, now + LEASE)
            self._known.move_to_end(name)
            while len(self._known) > MOST:
                self._known.popitem(last=False)

    def forget_all(self) -> None:
        """Some key was revoked."""
        with self._lock:
            self.tick += 1
            self._known.clear()

    def ids(self) -> list[int]:
        """Keys to look at."""
        now = self._clock()
        with self._lock:
            return list({known.caller.key_id for known in self._known.values() if now <= known.since + LONGEST})

    def confirm(self, alive: Iterable[int], looked: float) -> None:
        """Take note of the keys that the database knew to be good at a time."""
        good = set(alive)
        with self._lock:
            for name, known in list(self._known.items()):
                if known.caller.key_id in good:
                    known.until = max(known.until, looked + LEASE)
                elif known.until < looked + LEASE:
                    del self._known[name]
