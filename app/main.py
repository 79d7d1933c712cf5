"""The composition root of the API: settings in, application out."""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.types import Receive, Scope, Send
from threadpoolctl import threadpool_limits

from app.api import (
    acquire,
    boards,
    comparisons,
    contexts,
    diagnostics,
    equilibrium,
    exclusions,
    exports,
    history,
    items,
    jobs,
    judgements,
    keys,
    operations,
    problems,
    rankings,
    stream,
    top,
    votes,
)
from app.api.acquire_door import AcquireDoor
from app.api.deps import Ports
from app.api.door import PastTheFramework
from app.api.hot import HotReads, Memory
from app.api.known import KnownKeys
from app.api.logs import JsonLines, RequestLog
from app.api.schemas import COMPONENTS
from app.api.streams import Streams
from app.api.tally import Tally
from app.api.vote_door import VoteDoor
from app.api.warm import Warm
from app.api.watch import Herald, Watch
from app.cache.connection import open_redis
from app.cache.limits import RateLimiter
from app.cache.news import RedisNews
from app.db.engine import open_engine, open_sessions
from app.db.unit_of_work import UnitOfWork
from app.queue import CeleryQueue, Queue, open_celery
from app.services.acquire.hatch import Hatch, Works
from app.services.announce import Announcer
from app.services.ballot_box.box import LONGEST_HOLD, BallotBox
from app.services.ballot_box.writer import GroupWriter
from app.services.estimands import register
from app.services.loaded.shelf import Shelf
from app.services.rankings.opened import Opener
from app.services.rankings.rendered import Rendered
from app.settings import Settings, load_settings
from app.web.routes import mount
from app.web.service_reader import ServiceReader

ROUTERS = (
    boards,
    items,
    contexts,
    exports,
    votes,
    judgements,
    exclusions,
    acquire,
    rankings,
    history,
    comparisons,
    top,
    equilibrium,
    stream,
    diagnostics,
    jobs,
    keys,
    operations,
)
DESCRIPTION = "Live rankings of models from preference votes: debiased, contextual, with simultaneous intervals."


def create_app(settings: Settings | None = None, *, queue: Queue | None = None) -> FastAPI:
    """The API on the database and the Redis that the settings name.

    Without settings, as a server calls it, they are read from the environment and logs go to standard error. Without a
    queue, messages to the worker go through Redis.
    """
    if settings is None:
        settings = load_settings()
        log_to_stderr(settings.server.log_level)
    if settings.database.url is None or settings.redis.url is None:
        raise ValueError("the API needs the URLs of a database and of Redis")
    register(settings.estimands.registered)
    # Many requests share the cores: a second thread for one small matrix only gets in the way.
    threadpool_limits(1)
    engine = open_engine(settings.database.url, pool_size=settings.database.pool_size)
    sessions = open_sessions(engine)
    at_once = open_engine(settings.database.url, pool_size=settings.database.pool_size, autocommit=True)
    # A connection of its own: requests that wait for a policy may hold all others.
    loader = open_engine(settings.database.url, pool_size=1)
    # Another: a group of votes waits for no request, and not long for another writer.
    writer = open_engine(settings.database.url, pool_size=1, tested=False, lock_timeout=LONGEST_HOLD)
    # And another: boards are watched also where all requests wait.
    watcher = open_engine(settings.database.url, pool_size=1)
    redis = open_redis(settings.redis.url)
    limiter = RateLimiter(redis, per_minute=settings.limits.rate_limit)
    memory, streams = Memory(Warm(), KnownKeys(), Tally(limiter)), Streams()
    watch = Watch(settings.redis.url, partial(UnitOfWork, open_sessions(watcher)), memory, streams)
    news = Herald(RedisNews(redis), watch)
    queue = queue or CeleryQueue(open_celery(settings.redis.url))
    announcer = Announcer(partial(news.publish, event="votes"), queue.live)

    open_writer = partial(UnitOfWork, open_sessions(writer), announce=announcer.votes)
    limits = {"most": settings.votes.waiting, "most_bytes": settings.votes.waiting_bytes}
    box = BallotBox(GroupWriter(open_writer, limiter), **limits)

    shelf = Shelf(partial(UnitOfWork, open_sessions(loader)))
    works = Works(partial(UnitOfWork, sessions), partial(UnitOfWork, open_sessions(at_once)))
    hatch = Hatch(works, shelf, limiter)
    acquiring = AcquireDoor(hatch, memory.tally)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as closing:
            # Closed from the last to the first, whatever fails.
            closing.callback(redis.close)
            for each in (engine, watcher, at_once, loader, writer):
                closing.callback(each.dispose)
            closing.callback(shelf.close)
            for door in (announcer, acquiring, box):
                closing.push_async_callback(to_thread, door.close)
            shelf.warm()
            await closing.enter_async_context(watch.watching())
            yield

    app = OrthorankApi(
        title="orthorank",
        version=version("orthorank"),
        description=DESCRIPTION,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.state.ports = ports = Ports(
        sessions=sessions,
        hatch=hatch,
        announcer=announcer,
        news=news,
        streams=streams,
        watch=watch,
        votes=VoteDoor(box, patience=settings.votes.patience),
        redis=redis,
        limiter=limiter,
        queue=queue,
        opener=Opener(),
        rendered=Rendered(),
        shelf=shelf,
    )
    app.ways_in = PastTheFramework(HotReads(app.in_full, memory), [ports.votes, acquiring])
    app.add_middleware(RequestLog)
    problems.install(app)
    for module in ROUTERS:
        app.include_router(module.router)
    mount(app, ServiceReader(ports.sessions, ports.opener, ports.rendered))
    return app


class OrthorankApi(FastAPI):
    """FastAPI behind ways in past it and answers from memory, with the schemas that routes name instead of building."""

    ways_in: PastTheFramework

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.ways_in(scope, receive, send)

    async def in_full(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer by the routes."""
        await super().__call__(scope, receive, send)

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            schema = get_openapi(
                title=self.title, version=self.version, description=self.description, routes=self.routes
            )
            schema["components"].setdefault("schemas", {}).update(COMPONENTS)
            self.openapi_schema = schema
        return self.openapi_schema


def log_to_stderr(level: str) -> None:
    """Write structured logs, one JSON document a line."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
