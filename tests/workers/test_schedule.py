"""What the clock sends, and when."""

from __future__ import annotations

import pytest

from app.queue import QUICK, ROUTES, SWEEP
from app.settings import load_settings
from workers.schedule import create_beat


def test_the_clock_sends_sweeps_that_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTHORANK_REDIS_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("ORTHORANK_WORKER_SWEEP_SECONDS", "3")
    beat = create_beat(load_settings())
    (entry,) = beat.conf.beat_schedule.values()
    assert entry == {"task": SWEEP, "schedule": 3.0, "options": {"expires": 6.0}}
    assert ROUTES[SWEEP] == {"queue": QUICK}


def test_the_clock_needs_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ORTHORANK_REDIS_URL", raising=False)
    with pytest.raises(ValueError, match="needs the URL of Redis"):
        create_beat(load_settings())
