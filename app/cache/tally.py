"""Requests that are not worth a command to Redis each: counted here and settled with it together.

Whoever sends more than a second's worth between two settlements is counted by the limiter itself from there on, so that
a caller has at most that much above the limit.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from threading import Lock

from app.cache.limits import RateLimiter


class Tally:
    """Counts requests per caller, for any thread.

    Parameters
    ----------
    limiter : counts for all processes together.
    """

    def __init__(self, limiter: RateLimiter, clock: Callable[[], float] = time.monotonic) -> None:
        self._limiter = limiter
        self._counting = limiter.counting
        self._clock = clock
        self._lock = Lock()
        self._served: Counter[str] = Counter()
        self._blocked: dict[str, float] = {}

    def take(self, caller: str) -> bool:
        """Count a request; False where the limiter itself has to count it, and perhaps to refuse it."""
        return self.take_all({caller: 1})

    def wait(self, caller: str) -> int:
        """Count a request, here or by the limiter; seconds for which the caller has to wait, as the limiter says."""
        return 0 if self.take(caller) else self._limiter.wait(caller)

    def take_all(self, asked: Mapping[str, int]) -> bool:
        """Count so many requests of each caller, or none of them where the limiter has to count those of one."""
        if not self._counting:
            return True
        now = self._clock() if self._blocked else 0.0
        with self._lock:
            if not all(self._has_room(caller, requests, now) for caller, requests in asked.items()):
                return False
            self._served.update(asked)
        return True

    def _has_room(self, caller: str, requests: int, now: float) -> bool:
        blocked = self._blocked and now < self._blocked.get(caller, 0.0)
        return not blocked and self._served[caller] + requests <= self._limiter.per_second

    async def settle(self) -> None:
        """Tell Redis of the requests since the last time."""
        with self._lock:
            served, self._served = self._served, Counter()
        waits = await asyncio.to_thread(self._limiter.settle, served) if served else {}
        now = self._clock()
        with self._lock:
            still = {caller: until for caller, until in self._blocked.items() if until > now}
            self._blocked = still | {caller: now + wait for caller, wait in waits.items()}
