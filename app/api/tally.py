"""Requests answered from memory, counted here and settled with Redis together.

A caller may so have at most the requests between two settlements, about a second's, above the limit.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable

from app.cache.limits import RateLimiter


class Tally:
    """Counts requests per caller.

    Parameters
    ----------
    limiter : counts for all processes together.
    """

    def __init__(self, limiter: RateLimiter, clock: Callable[[], float] = time.monotonic) -> None:
        self._limiter = limiter
        self._counting = limiter.counting
        self._clock = clock
        self._served: Counter[str] = Counter()
        self._blocked: dict[str, float] = {}

    def take(self, caller: str) -> bool:
        """Count a request; False where the caller has to be refused by the limiter itself."""
        if not self._counting:
            return True
        if self._blocked and self._clock() < self._blocked.get(caller, 0.0):
            return False
        self._served[caller] += 1
        return True

    async def settle(self) -> None:
        """Tell Redis of the requests since the last time."""
        served, self._served = self._served, Counter()
        waits = await asyncio.to_thread(self._limiter.settle, served) if served else {}
        now = self._clock()
        still = {caller: until for caller, until in self._blocked.items() if until > now}
        self._blocked = still | {caller: now + wait for caller, wait in waits.items()}
