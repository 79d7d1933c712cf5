"""What commands that work on the database share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial

import typer

from app.cache.connection import open_redis
from app.cache.news import RedisNews
from app.cli.options import database_url
from app.db.engine import open_engine, open_sessions
from app.db.unit_of_work import UnitOfWork
from app.domain.errors import DomainError
from app.queue import CeleryQueue, open_celery
from app.services.announce import Announcer
from app.services.estimands import register
from app.settings import Settings


@contextmanager
def units_of_work(settings: Settings) -> Iterator[partial[UnitOfWork]]:
    """Open units of work on the database of connected settings, and let its connections go at the end.

    New votes are announced where Redis is known: commands that only need the database do without.
    """
    register(settings.estimands.registered)
    engine = open_engine(database_url(settings))
    try:
        with _announcer(settings.redis.url) as announcer:
            yield partial(UnitOfWork, open_sessions(engine), announce=announcer.votes)
    finally:
        engine.dispose()


@contextmanager
def _announcer(url: str | None) -> Iterator[Announcer]:
    if url is None:
        yield Announcer()
        return
    with closing(open_redis(url)) as redis:
        news, queue = RedisNews(redis), CeleryQueue(open_celery(url))
        with closing(Announcer(partial(news.publish, event="votes"), queue.live)) as announcer:
            yield announcer


@contextmanager
def refusals_told() -> Iterator[None]:
    """Turn a refusal into one line and exit status 1."""
    try:
        yield
    except DomainError as error:
        typer.echo(f"orthorank: {error}", err=True)
        raise typer.Exit(1) from None
