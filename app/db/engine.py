"""Open the database: one engine a process, made by whoever composes the process."""

from __future__ import annotations

from typing import Any

import orjson
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.orm import Session, sessionmaker

LIBPQ_SCHEME, DRIVER = "postgresql", "postgresql+psycopg"


def open_engine(url: str, *, pool_size: int = 5) -> Engine:
    """An engine for a libpq URL (postgres://, postgresql://) or SQLAlchemy's own form of it.

    Connections are tested when they leave the pool, so that a restart of PostgreSQL costs no request.
    """
    return create_engine(
        make_url(url.replace("postgres://", f"{LIBPQ_SCHEME}://", 1)).set(drivername=DRIVER),
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=True,
        json_serializer=_serialise,
        json_deserializer=orjson.loads,
    )


def open_sessions(engine: Engine) -> sessionmaker[Session]:
    """Sessions on the engine that keep what they loaded after a commit."""
    return sessionmaker(engine, expire_on_commit=False)


def _serialise(value: Any) -> str:
    return orjson.dumps(value).decode()
