"""Is the process there, and can it work?"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Literal

import orjson
from fastapi import Response
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.api.deps import Ports, PortsOf
from app.api.problems import describe
from app.api.routing import api_router
from app.db.migrations import schema_of
from app.domain.errors import Unavailable

router = api_router(tag="operations")
log = logging.getLogger(__name__)
Answer = Literal["ok", "failed"]


@dataclass(frozen=True, slots=True)
class Health:
    """The process answers."""

    status: Literal["ok"] = "ok"


@dataclass(frozen=True, slots=True)
class Readiness:
    """What the service needs, part by part."""

    database: Answer
    migrations: Answer
    redis: Answer


@router.head("/healthz", include_in_schema=False)
@router.get("/healthz")
async def healthz() -> Health:
    """Whether the process answers at all."""
    return Health()


@router.head("/readyz", include_in_schema=False)
@router.get("/readyz", response_model=Readiness)
def readyz(ports: PortsOf) -> Response:
    """Whether the database, its migrations and Redis are there."""
    database, migrations = _database(ports)
    parts = {"database": database, "migrations": migrations, "redis": _redis(ports)}
    if set(parts.values()) == {"ok"}:
        return Response(orjson.dumps(parts), media_type="application/json")
    failed = ", ".join(name for name, answer in parts.items() if answer != "ok")
    problem = describe(Unavailable("not-ready", f"not ready: {failed}")) | parts
    return Response(orjson.dumps(problem), 503, {"Retry-After": "2"}, media_type="application/problem+json")


def _database(ports: Ports) -> tuple[Answer, Answer]:
    try:
        with ports.sessions() as session:
            return "ok", "ok" if schema_of(session.connection()).current else "failed"
    except SQLAlchemyError as error:
        log.warning("the database does not answer: %s", error)
        return "failed", "failed"


def _redis(ports: Ports) -> Answer:
    try:
        ports.redis.ping()
    except RedisError as error:
        log.warning("Redis does not answer: %s", error)
        return "failed"
    return "ok"
