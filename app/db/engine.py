"""Open the database: one engine a process, made by whoever composes the process."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson
from psycopg.errors import ReadOnlySqlTransaction
from sqlalchemy import Engine, ExceptionContext, create_engine, event, make_url
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

LIBPQ_SCHEME, DRIVER = "postgresql", "postgresql+psycopg"
SETTINGS = {"datestyle": "ISO", "array_nulls": "on", "default_transaction_isolation": "'read committed'"}
"""Of every connection. Who waited for a lock has to see what was changed meanwhile."""


def open_engine(
    url: str,
    *,
    pool_size: int = 5,
    autocommit: bool = False,
    tested: bool = True,
    lock_timeout: float | None = None,
) -> Engine:
    """An engine for a libpq URL (postgres://, postgresql://) or SQLAlchemy's own form of it.

    Connections are tested when they leave the pool, so that a restart of PostgreSQL costs no request. Text is UTF-8,
    times are ISO, and statements see what was committed before them, whatever the role or the database is set to. A
    connection on which nothing can be written is one to a database that is away.

    Parameters
    ----------
    pool_size : connections that stay open; as many more may come for a while.
    autocommit : each statement is a transaction, for work of one statement or two that is waited for. Connections are
        not tested then: it would take as long as the statement.
    tested : whether connections are tested; who tries again by itself does without.
    lock_timeout : seconds for which a statement waits for a lock; without it as long as it takes.
    """
    mode: dict[str, Any] = {"isolation_level": "AUTOCOMMIT", "pool_reset_on_return": None} if autocommit else {}
    engine = create_engine(
        make_url(url.replace("postgres://", f"{LIBPQ_SCHEME}://", 1)).set(drivername=DRIVER),
        pool_size=pool_size,
        max_overflow=pool_size,
        pool_pre_ping=tested and not autocommit,
        client_encoding="utf8",
        json_serializer=_serialise,
        json_deserializer=orjson.loads,
        **mode,
    )
    event.listen(engine, "connect", partial(_prepare, lock_timeout=lock_timeout))
    event.listen(engine, "handle_error", _read_only)
    return engine


def open_sessions(engine: Engine) -> sessionmaker[Session]:
    """Sessions on the engine that keep what they loaded after a commit."""
    return sessionmaker(engine, expire_on_commit=False)


def _prepare(connection: Any, _: object, *, lock_timeout: float | None) -> None:
    settings = dict(SETTINGS)
    if lock_timeout is not None:
        settings["lock_timeout"] = str(round(lock_timeout * 1000))
    connection.execute("; ".join(f"SET {name} = {value}" for name, value in settings.items()))
    connection.commit()


def _read_only(context: ExceptionContext) -> None:
    """After a change of servers, or on a full disk: the next connection may lead to one that is written to."""
    if isinstance(context.original_exception, ReadOnlySqlTransaction):
        context.is_disconnect = True
        raise OperationalError(context.statement, None, context.original_exception, connection_invalidated=True)


def _serialise(value: Any) -> str:
    return orjson.dumps(value).decode()
