"""Open Redis: one client a process, made by whoever composes the process."""

from __future__ import annotations

from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

PATIENCE = 0.5
"""Seconds for an answer: what waits on Redis in a request can also go without."""


def open_redis(url: str) -> Redis:
    """A client that gives up soon and without a second try."""
    return Redis.from_url(
        url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE, retry=Retry(NoBackoff(), retries=0)
    )
