"""Open the database: one engine a process, made by whoever composes the process."""

from __future__ import annotations

from functools import partial
from typing import Any

import orjson
from sqlalchemy import Engine, create_engine, event, make_url
from sqlalchemy.orm import Session, sessionmaker

LIBPQ_SCHEME, DRIVER = "postgresql", "postgresql+psycopg"


def open_engine(
    url: str,
    *,
    pool_size: int = 5,
    autocommit: bool = False,
    tested: bool = True,
    lock_timeout: float | None = None,
) -> Engine:
    """An engine for a libpq URL (postgres://, postgresql://) or SQLAlchemy's own form of it.

    Connections are tested when they leave the pool, so that a restart of PostgreSQL costs no request. Text is UTF-8 and
    times are ISO on them, whatever the role or the database is set to.

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
    return engine


def open_sessions(engine: Engine) -> sessionmaker[Session]:
    """Sessions on the engine that keep what they loaded after a commit."""
    return sessionmaker(engine, expire_on_commit=False)


def _prepare(connection: Any, _: object, *, lock_timeout: float | None) -> None:
    settings = {"datestyle": "ISO"}
    if lock_timeout is not None:
        settings["lock_timeout"] = str(round(lock_timeout * 1000))
    connection.execute("; ".join(f"SET {name} = {value}" for name, value in settings.items()))
    connection.commit()


def _serialise(value: Any) -> str:
    return orjson.dumps(value).decode()
