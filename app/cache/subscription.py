"""Listening to the news: one subscription a process, taken up again for as long as the process lives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from redis.asyncio import Redis
from redis.exceptions import RedisError

from app.cache.connection import PATIENCE
from app.cache.news import CHANNEL, Bulletin, heard

log = logging.getLogger(__name__)
AGAIN = 0.5
"""Seconds between two attempts to subscribe."""
HEARTBEAT = 5
"""Seconds after which a silent connection is asked whether it still is one."""


class Subscription:
    """Passes news on as it comes in.

    Parameters
    ----------
    url : of Redis.
    hear : takes each piece of news, in the event loop.
    missed : called at every start of a subscription: what was told before it was not heard.
    """

    def __init__(self, url: str, *, hear: Callable[[Bulletin], None], missed: Callable[[], None]) -> None:
        self._url = url
        self._hear = hear
        self._missed = missed
        self.alive = False

    async def run(self) -> None:
        """Listen until cancelled."""
        while True:
            try:
                await self._listen()
            except (RedisError, OSError) as error:
                log.log(logging.WARNING if self.alive else logging.DEBUG, "no news from Redis: %s", error)
            self.alive = False
            await asyncio.sleep(AGAIN)

    async def _listen(self) -> None:
        redis = Redis.from_url(self._url, socket_connect_timeout=PATIENCE, health_check_interval=HEARTBEAT)
        async with redis, redis.pubsub(ignore_subscribe_messages=True) as channel:
            await channel.subscribe(CHANNEL)
            self.alive = True
            self._missed()
            while True:
                message = await channel.get_message(timeout=HEARTBEAT)
                bulletin = None if message is None else heard(message["data"])
                if bulletin is not None:
                    self._hear(bulletin)
