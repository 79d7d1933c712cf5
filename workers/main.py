"""Composition root of the background worker: the Celery application with its tasks and queues."""

from __future__ import annotations

from celery import Celery
from threadpoolctl import threadpool_limits

from app.queue import QUICK, SHARED, SLOW, open_celery
from app.services.estimands import register
from app.settings import Settings
from workers.refit import install

ONLY = {"live": (QUICK,), "refits": (SLOW, SHARED), "tasks": (SHARED,)}
"""What a worker may be there for alone, and the queues of it."""


def create_worker(settings: Settings) -> Celery:
    """Join the parts.

    Raises
    ------
    ValueError
        when the settings name no Redis or no database.
    """
    if settings.redis.url is None:
        raise ValueError("a worker needs the URL of Redis")
    register(settings.estimands.registered)
    # Threads of the linear algebra cost more than they bring on such small matrices, and change the last bits. They are
    # limited once for all: limits that tasks set and lift would undo each other's.
    threadpool_limits(1)
    celery = open_celery(settings.redis.url)
    celery.conf.update(worker_prefetch_multiplier=1, worker_hijack_root_logger=False, worker_redirect_stdouts=False)
    install(celery, settings)
    return celery


def worker_arguments(settings: Settings, only: str | None = None) -> list[str]:
    """Return the arguments of a worker: threads, since a refit forks processes of its own, which daemons may not.

    Parameters
    ----------
    only : of `ONLY`; without it a worker is there for everything, and a live update waits while a refit computes.
    """
    queues = (SLOW, QUICK, SHARED) if only is None else ONLY[only]
    return [
        "worker",
        "--pool=threads",
        f"--concurrency={settings.worker.threads}",
        f"--queues={','.join(queues)}",
        f"--loglevel={settings.server.log_level}",
        "--without-gossip",
        "--without-mingle",
    ]
