"""The clock of the background work. It knows tasks by name only, so that it stays small."""

from __future__ import annotations

from celery import Celery

from app.queue import SWEEP, open_celery
from app.settings import Settings


def create_beat(settings: Settings) -> Celery:
    """Return the application that sends the periodic tasks.

    Raises
    ------
    ValueError
        when the settings name no Redis.
    """
    if settings.redis.url is None:
        raise ValueError("the clock needs the URL of Redis")
    celery = open_celery(settings.redis.url)
    celery.conf.update(beat_schedule=schedule(settings.worker.sweep_seconds))
    return celery


def beat_arguments(settings: Settings) -> list[str]:
    """Return the arguments of the beat: it remembers nothing, so that no crash can spoil its memory."""
    return ["beat", "--scheduler=celery.beat:Scheduler", f"--loglevel={settings.server.log_level}"]


def schedule(seconds: float) -> dict[str, dict[str, object]]:
    """Return the periodic tasks: a look for lagging boards every so many seconds."""
    # A sweep that waited longer than the next one takes is of no use: it goes away by itself.
    return {"sweep": {"task": SWEEP, "schedule": seconds, "options": {"expires": 2 * seconds}}}
