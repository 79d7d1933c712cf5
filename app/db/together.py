"""Several statements in one round trip: while many processes share the machine, waiting costs more than working."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.pq import PipelineStatus, TransactionStatus
from sqlalchemy import Dialect, TextClause
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session

Statement = tuple[TextClause, Mapping[str, Any]]
Rows = list[tuple[Any, ...]]


def together(session: Session, statements: Sequence[Statement]) -> list[Rows]:
    """Run statements one after the other within the session's transaction; the rows of each."""
    with _driver(session) as driver, driver.pipeline():
        cursors = [driver.execute(_written(text), values, prepare=True) for text, values in statements]
        return [cursor.fetchall() for cursor in cursors]


def plainly(session: Session, statement: TextClause, values: Mapping[str, Any]) -> tuple[Any, ...]:
    """The one row of a statement that requests wait for, read without the price that the toolkit has for each."""
    with _driver(session) as driver:
        row = driver.execute(_written(statement), values, prepare=True).fetchone()
    assert row is not None
    return row


@contextmanager
def _driver(session: Session) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """The session's connection; what goes wrong on it is told in the toolkit's words."""
    connection = session.connection()
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    try:
        yield driver
    except psycopg.Error as error:
        if broken := not _is_usable(driver):
            driver.close()
            connection.invalidate()
        known = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        kind = OperationalError if known else DBAPIError
        raise kind("together", {}, error, connection_invalidated=broken) from error


def _is_usable(driver: psycopg.Connection[tuple[Any, ...]]) -> bool:
    """Whether a connection can be rolled back: one that broke within a pipeline may stay in it, and open."""
    if driver.closed or driver.pgconn.pipeline_status != PipelineStatus.OFF:
        return False
    return driver.info.transaction_status not in (TransactionStatus.ACTIVE, TransactionStatus.UNKNOWN)


@lru_cache
def _written(statement: TextClause) -> bytes:
    """The statement as the driver reads it."""
    dialect: Dialect = PGDialect_psycopg()  # type: ignore[no-untyped-call]
    return str(statement.compile(dialect=dialect)).encode()
