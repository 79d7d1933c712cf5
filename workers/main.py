"""Composition root of the background worker: the Celery application with its tasks, queues and schedule."""

from __future__ import annotations

from celery import Celery

from app.queue import QUICK, SLOW, SWEEP, open_celery
from app.settings import Settings
from workers.refit import install

QUEUES = (QUICK, SLOW)


def create_worker(settings: Settings) -> Celery:
    """Join the parts. Worker and beat both run this application.

    Raises
    ------
    ValueError
        when the settings name no Redis or no database.
    """
    if settings.redis.url is None:
        raise ValueError("a worker needs the URL of Redis")
    celery = open_celery(settings.redis.url)
    celery.conf.update(
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        beat_schedule=_schedule(settings.worker.sweep_seconds),
    )
    install(celery, settings)
    return celery


def worker_arguments(settings: Settings) -> list[str]:
    """Return the arguments of a worker: threads, since a refit forks processes of its own, which daemons may not."""
    return [
        "worker",
        "--pool=threads",
        f"--concurrency={settings.worker.threads}",
        f"--queues={','.join(QUEUES)}",
        f"--loglevel={settings.server.log_level}",
        "--without-gossip",
        "--without-mingle",
    ]


def beat_arguments(settings: Settings) -> list[str]:
    """Return the arguments of the beat: it remembers nothing, so that no crash can spoil its memory."""
    return ["beat", "--scheduler=celery.beat:Scheduler", f"--loglevel={settings.server.log_level}"]


def _schedule(seconds: float) -> dict[str, object]:
    # A sweep that waited longer than the next one takes is of no use: it goes away by itself.
    return {"sweep": {"task": SWEEP, "schedule": seconds, "options": {"expires": 2 * seconds}}}
