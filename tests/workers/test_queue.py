"""Messages wake workers; a broker that is away costs a warning."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from redis import Redis

from app.queue import LIVE, QUICK, REFIT, SHARED, SLOW, TASKS, WAITS, CeleryQueue, open_celery


def test_a_refit_is_sent_to_the_slow_queue(redis_url: str) -> None:
    CeleryQueue(open_celery(redis_url)).refit(7)
    with Redis.from_url(redis_url) as client:
        message = json.loads(client.lpop(SLOW))
    assert message["headers"]["task"] == REFIT
    assert message["headers"]["argsrepr"] == "(7,)"


def test_a_live_update_is_sent_to_the_quick_queue(redis_url: str) -> None:
    CeleryQueue(open_celery(redis_url)).live(7)
    with Redis.from_url(redis_url) as client:
        message = json.loads(client.lpop(QUICK))
    assert message["headers"]["task"] == LIVE


def test_word_of_tasks_is_sent_to_a_queue_of_its_own_and_goes_away(redis_url: str) -> None:
    batch = uuid4()
    CeleryQueue(open_celery(redis_url)).tasks(batch)
    with Redis.from_url(redis_url) as client:
        message = json.loads(client.lpop(SHARED))
    assert message["headers"]["task"] == TASKS
    assert str(batch) in message["headers"]["argsrepr"]
    left = datetime.fromisoformat(message["headers"]["expires"]) - datetime.now(UTC)
    assert timedelta(seconds=WAITS - 5) < left <= timedelta(seconds=WAITS)


def test_a_broker_that_is_away_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        CeleryQueue(open_celery("redis://127.0.0.1:1/0")).refit(7)
    assert "the next sweep makes up for it" in caplog.text


def test_a_unix_socket_gets_the_name_that_celery_knows() -> None:
    assert open_celery("unix:///run/redis.sock?db=2").conf.broker_url == "redis+socket:///run/redis.sock?virtual_host=2"
