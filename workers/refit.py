"""The tasks of the worker: refit a board, take its new votes in, and look for boards that lag."""

from __future__ import annotations

from functools import partial

from celery import Celery

from app.cache.connection import open_redis
from app.cache.news import RedisNews
from app.db.engine import open_engine, open_sessions
from app.db.locks import Lock, lease
from app.db.unit_of_work import UnitOfWork
from app.queue import LIVE, REFIT, SWEEP, CeleryQueue
from app.services import jobs
from app.services.live.run import Updater
from app.services.refit.run import Refitter
from app.settings import Settings


def install(celery: Celery, settings: Settings) -> None:
    """Give an application its tasks; connections are opened when the first of them runs.

    Raises
    ------
    ValueError
        when the settings name no database.
    """
    if settings.database.url is None or settings.redis.url is None:
        raise ValueError("a worker needs the URLs of a database and of Redis")
    engine = open_engine(settings.database.url, pool_size=settings.database.pool_size)
    open_work = partial(UnitOfWork, open_sessions(engine))
    news = RedisNews(open_redis(settings.redis.url))
    queue = CeleryQueue(celery)
    updater = Updater(open_work, partial(lease, engine, Lock.LIVE), news, queue.refit)
    open_lease = partial(lease, engine, Lock.REFIT)
    refitter = Refitter(open_work, open_lease, settings.worker.processes, news, updater.catch_up)

    @celery.task(name=REFIT)
    def refit(board_id: int) -> None:
        refitter.serve(board_id)

    @celery.task(name=LIVE)
    def live(board_id: int) -> None:
        updater.serve(board_id)

    @celery.task(name=SWEEP)
    def sweep() -> None:
        with open_work() as work:
            jobs.sweep(work, queue)
