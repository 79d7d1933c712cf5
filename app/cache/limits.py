"""Rate limits: so many requests a minute, counted in Redis for all processes together."""

from __future__ import annotations

import logging

from redis import Redis
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

WINDOW = 60_000
"""Milliseconds. A caller that was silent for so long may send a whole window's requests at once."""

# The generic cell rate algorithm: one number per caller, the time at which its requests so far are paid for.
TAKE = """
local clock = redis.call('TIME')
local now = clock[1] * 1000 + clock[2] / 1000
local paid = math.max(tonumber(redis.call('GET', KEYS[1]) or '0'), now) + tonumber(ARGV[1])
local ahead = paid - now
if ahead > tonumber(ARGV[2]) then
    return math.ceil(ahead - tonumber(ARGV[2]))
end
redis.call('SET', KEYS[1], string.format('%.3f', paid), 'PX', math.ceil(ahead))
return 0
"""


class RateLimiter:
    """Counts requests per caller.

    Parameters
    ----------
    per_minute : requests that one caller may send; 0: any number.
    """

    def __init__(self, redis: Redis, *, per_minute: int) -> None:
        self._take = redis.register_script(TAKE)
        self._per_minute = per_minute

    def wait(self, caller: str) -> int:
        """Seconds for which the caller has to wait; 0 lets the request through and counts it.

        Without Redis nothing is counted: a vote lost to a failed counter would be worse than one too many.
        """
        if self._per_minute == 0:
            return 0
        try:
            milliseconds = self._take(keys=[f"limit:{caller}"], args=[WINDOW / self._per_minute, WINDOW])
        except RedisError as error:
            log.warning("requests are not counted: %s", error)
            return 0
        return -(-int(milliseconds) // 1000)
