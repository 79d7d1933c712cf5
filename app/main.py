"""The composition root of the API: settings in, application out."""

from __future__ import annotations

import logging
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, NamedTuple

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from redis import Redis
from sqlalchemy import Engine
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
from app.api.vote_door import VoteDoor
from app.api.warm import Warm
from app.api.watch import Herald, Watch
from app.cache.connection import open_redis
from app.cache.limits import RateLimiter
from app.cache.news import RedisNews
from app.cache.tally import Tally
from app.db.engine import open_engine, open_sessions
from app.db.unit_of_work import Announce, UnitOfWork
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
    register(settings.estimands.registered)
    # Many requests share the cores: a second thread for one small matrix only gets in the way.
    threadpool_limits(1)
    parts = Parts.join(settings, Stores.open(settings), queue)
    ports = parts.ports
    app = OrthorankApi(
        title="orthorank",
        version=version("orthorank"),
        description=DESCRIPTION,
        lifespan=parts.living,
        docs_url=None,
        redoc_url=None,
    )
    app.state.ports = ports
    app.ways_in = PastTheFramework(HotReads(app.in_full, parts.memory), [ports.votes, parts.acquiring])
    app.add_middleware(RequestLog)
    problems.install(app)
    for module in ROUTERS:
        app.include_router(module.router)
    mount(app, ServiceReader(ports.sessions, ports.opener, ports.rendered), parts.memory.tally.wait)
    return app


class Stores(NamedTuple):
    """The connections of the process, by the work that must not wait for other work.

    Parameters
    ----------
    requests : of the routes.
    at_once : of single statements that are transactions of their own.
    loader : of policies, while requests that wait for one may hold all others.
    writer : of groups of votes, which wait for no request, and not long for another writer.
    watcher : of the watch over boards, also where all requests wait.
    """

    requests: Engine
    at_once: Engine
    loader: Engine
    writer: Engine
    watcher: Engine
    redis: Redis

    @classmethod
    def open(cls, settings: Settings) -> Stores:
        """Ready to connect.

        Raises
        ------
        ValueError : settings that name no database or no Redis.
        """
        url, size = settings.database.url, settings.database.pool_size
        if url is None or settings.redis.url is None:
            raise ValueError("the API needs the URLs of a database and of Redis")
        return cls(
            requests=open_engine(url, pool_size=size),
            at_once=open_engine(url, pool_size=size, autocommit=True),
            loader=open_engine(url, pool_size=1),
            writer=open_engine(url, pool_size=2, tested=False, lock_timeout=LONGEST_HOLD),
            watcher=open_engine(url, pool_size=1),
            redis=open_redis(settings.redis.url),
        )

    def close_with(self, closing: AsyncExitStack) -> None:
        """Close each of them when the stack is left, whatever fails."""
        closing.callback(self.redis.close)
        for engine in (self.requests, self.watcher, self.at_once, self.loader, self.writer):
            closing.callback(engine.dispose)


def _works(engine: Engine, **options: Announce) -> Callable[[], UnitOfWork]:
    return partial(UnitOfWork, open_sessions(engine), **options)


@dataclass(frozen=True, slots=True)
class Parts:
    """What the application is made of, and what ends with it.

    Parameters
    ----------
    stores : connections.
    memory : of answers and callers.
    box : of single votes, for their `writer`.
    acquiring : the way in of requests for the next pair.
    ports : what routes are given.
    """

    stores: Stores
    memory: Memory
    writer: GroupWriter
    box: BallotBox
    acquiring: AcquireDoor
    ports: Ports

    @classmethod
    def join(cls, settings: Settings, stores: Stores, queue: Queue | None) -> Parts:
        """Nothing runs yet."""
        assert settings.redis.url is not None
        limiter = RateLimiter(stores.redis, per_minute=settings.limits.rate_limit)
        memory, streams = Memory(Warm(), KnownKeys(), Tally(limiter)), Streams()
        watch = Watch(settings.redis.url, _works(stores.watcher), memory, streams)
        news = Herald(RedisNews(stores.redis), watch)
        queue = queue or CeleryQueue(open_celery(settings.redis.url))
        announcer = Announcer(partial(news.publish, event="votes"), queue.live)
        writer = GroupWriter(_works(stores.writer, announce=announcer.votes), limiter, memory.tally)
        box = BallotBox(writer, most=settings.votes.waiting, most_bytes=settings.votes.waiting_bytes)
        shelf = Shelf(_works(stores.loader))
        hatch = Hatch(Works(_works(stores.requests), _works(stores.at_once)), shelf, limiter)
        ports = Ports(
            sessions=open_sessions(stores.requests),
            hatch=hatch,
            announcer=announcer,
            news=news,
            streams=streams,
            watch=watch,
            votes=VoteDoor(box, patience=settings.votes.patience),
            redis=stores.redis,
            limiter=limiter,
            queue=queue,
            opener=Opener(),
            rendered=Rendered(),
            shelf=shelf,
        )
        return cls(stores, memory, writer, box, AcquireDoor(hatch, memory.tally), ports)

    @asynccontextmanager
    async def living(self, _: FastAPI) -> AsyncIterator[None]:
        """From the start of the server to its end."""
        ports = self.ports
        async with AsyncExitStack() as closing:
            # Closed from the last to the first.
            self.stores.close_with(closing)
            closing.callback(ports.shelf.close)
            closing.callback(self.writer.close)
            for door in (ports.announcer, self.acquiring, self.box):
                closing.push_async_callback(to_thread, door.close)
            ports.shelf.warm()
            await closing.enter_async_context(ports.watch.watching())
            yield


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
