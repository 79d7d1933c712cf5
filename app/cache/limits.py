"""Rate limits: so many requests a minute, counted in Redis for all processes together."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping
from typing import NamedTuple

from redis import Redis
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

WINDOW = 60_000
"""Milliseconds. A caller that was silent for so long may send a whole window's requests at once."""

# The generic cell rate algorithm: one number per caller, the time at which its requests so far are paid for. Of several
# requests the first ones pass, as if they had come one by one; all of those that were served already are paid for.
# Clocks are kept to 0.001 of a step.
TAKE = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
local step, window = tonumber(ARGV[1]), tonumber(ARGV[2])
local answers = {}
for number, key in ipairs(KEYS) do
    local asked = tonumber(ARGV[number + 3])
    local paid = math.max(tonumber(redis.call('GET', key) or '0'), now)
    local passed = math.max(0, math.min(asked, math.floor((window - paid + now) / step + 0.001)))
    paid = paid + (ARGV[3] == '1' and asked or passed) * step
    if paid > now then
        redis.call('SET', key, string.format('%.3f', paid), 'PX', math.ceil(paid - now))
    end
    table.insert(answers, passed)
    table.insert(answers, passed < asked and math.ceil(paid + step - now - window) or 0)
end
return answers
"""


class Quota(NamedTuple):
    """How many of a caller's requests pass, and for how many seconds the others have to wait."""

    passed: int
    wait: int


class RateLimiter:
    """Counts requests per caller.

    Parameters
    ----------
    per_minute : requests that one caller may send; 0: any number.
    """

    def __init__(self, redis: Redis, *, per_minute: int) -> None:
        self._take = redis.register_script(TAKE)
        self._per_minute = per_minute

    @property
    def counting(self) -> bool:
        """Whether there is a limit at all."""
        return self._per_minute > 0

    @property
    def per_second(self) -> float:
        """What a caller may send on average."""
        return self._per_minute / 60 if self.counting else math.inf

    def settle(self, served: Mapping[str, int]) -> dict[str, int]:
        """Count requests that were served already; seconds to wait for those callers who had too many.

        What they had too much is paid for by waiting. Without Redis nothing is counted, as in `wait`.
        """
        return {caller: quota.wait for caller, quota in self._quotas(served, served=True).items() if quota.wait}

    def wait(self, caller: str) -> int:
        """Seconds for which the caller has to wait; 0 lets the request through and counts it.

        Without Redis nothing is counted: a vote lost to a failed counter would be worse than one too many.
        """
        return self.quotas({caller: 1})[caller].wait

    def quotas(self, asked: Mapping[str, int]) -> dict[str, Quota]:
        """What `wait` says to so many requests of each caller, in one round trip."""
        return self._quotas(asked, served=False)

    def _quotas(self, asked: Mapping[str, int], *, served: bool) -> dict[str, Quota]:
        free = {caller: Quota(requests, 0) for caller, requests in asked.items()}
        if self._per_minute == 0 or not asked:
            return free
        keys = [f"limit:{caller}" for caller in asked]
        try:
            told = self._take(keys=keys, args=[WINDOW / self._per_minute, WINDOW, int(served), *asked.values()])
        except RedisError as error:
            log.warning("requests are not counted: %s", error)
            return free
        pairs = zip(told[::2], told[1::2], strict=True)
        return {
            caller: Quota(int(passed), -(-int(wait) // 1000))
            for caller, (passed, wait) in zip(asked, pairs, strict=True)
        }
