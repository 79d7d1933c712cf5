"""The tasks of the worker: refit a board, help others with theirs, take new votes in, look for boards that lag."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from celery import Celery

from app.cache.connection import open_redis
from app.cache.news import RedisNews
from app.db.engine import open_engine, open_sessions
from app.db.locks import Lock, lease
from app.db.unit_of_work import UnitOfWork
from app.queue import LIVE, REFIT, SWEEP, TASKS, CeleryQueue
from app.services import jobs
from app.services.live.run import Updater
from app.services.refit.crew.duty import Duty
from app.services.refit.crew.helping import Helper
from app.services.refit.crew.leading import Workers
from app.services.refit.crew.version import fingerprint
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
    duty, version, processes = Duty(), fingerprint(settings.estimands.registered), settings.worker.processes
    helper = Helper(open_work, processes, version, duty)

    def crew(board_id: int) -> Workers:
        return Workers(open_work, queue.tasks, board_id, processes, version, duty)

    refitter = Refitter(open_work, open_lease, crew, news, updater.catch_up)

    @celery.task(name=REFIT)
    def refit(board_id: int) -> None:
        refitter.serve(board_id)

    @celery.task(name=TASKS)
    def tasks(batch: str) -> None:
        helper.serve(UUID(batch))

    @celery.task(name=LIVE)
    def live(board_id: int) -> None:
        updater.serve(board_id)

    @celery.task(name=SWEEP)
    def sweep() -> None:
        with open_work() as work:
            jobs.sweep(work, queue)
