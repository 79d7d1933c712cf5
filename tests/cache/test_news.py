"""News goes through a real Valkey, and a server that is away stops nobody."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from uuid import uuid4

import pytest
from redis import Redis

from app.cache.connection import open_redis
from app.cache.news import CHANNEL, Bulletin, RedisNews, heard


def test_news_is_heard_as_it_was_told(redis_url: str) -> None:
    """Board, event and data arrive, UUIDs and moments as text."""
    snapshot, moment = uuid4(), datetime(2026, 5, 4, tzinfo=UTC)
    with Redis.from_url(redis_url) as redis, redis.pubsub(ignore_subscribe_messages=True) as subscription:
        subscription.subscribe(CHANNEL)
        subscription.get_message(timeout=2)
        RedisNews(redis).publish(7, "rankings", snapshot=snapshot, version=3, votes_through=moment)
        message = subscription.get_message(timeout=2)
    assert message is not None
    found = heard(message["data"])
    expected = {"snapshot": str(snapshot), "version": 3, "votes_through": "2026-05-04T00:00:00+00:00"}
    assert found == Bulletin(7, "rankings", expected)


def test_without_redis_the_caller_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """A refused connection is a warning."""
    with open_redis("redis://127.0.0.1:1/0") as redis, caplog.at_level(logging.WARNING):
        RedisNews(redis).publish(7, "votes")
    assert "news 'votes' of board 7 not told" in caplog.text


@pytest.mark.parametrize(
    "message", [b"", b"[]", b"7", b"{}", b'{"board":"x","event":"votes"}', b'{"board":1,"event":"?"}']
)
def test_what_is_no_news_is_passed_over(message: bytes) -> None:
    """Others may write to the same channel."""
    assert heard(message) is None
