"""Several statements in one round trip: while many processes share the machine, waiting costs more than working."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import count
from typing import Any

import psycopg
from psycopg.errors import ReadOnlySqlTransaction, error_from_result
from psycopg.pq import ExecStatus, PipelineStatus, TransactionStatus
from psycopg.pq.abc import PGresult
from sqlalchemy import Dialect, TextClause
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session

Statement = tuple[TextClause, Mapping[str, Any]]
PREPARED, NUMBERS = "prepared", count()
PARAMETER = re.compile(r"(?<!:):(\w+)")
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


def at_once(session: Session, statement: TextClause, values: Mapping[str, str]) -> str | None:
    """The one value of a statement, as text, of parameters as text.

    The interpreter's lock is let go once and taken once. With the driver's cursors a thread that runs beside a busy
    loop waits for the lock a dozen times, and mostly does nothing else. The transaction has to have begun, unless each
    statement is one.
    """
    query, names = _numbered(statement)
    sent = [values[each].encode() for each in names]
    with _driver(session) as driver:
        connection = driver.pgconn
        if driver.autocommit:
            result = connection.exec_prepared(_prepared(session, driver, statement, query), sent)
        else:
            assert driver.info.transaction_status == TransactionStatus.INTRANS
            # The driver forgets what is prepared with each transaction that is rolled back.
            result = connection.exec_params(query, sent)
        value = _checked(driver, result).get_value(0, 0)
    return None if value is None else value.decode()


def _prepared(session: Session, driver: psycopg.Connection[Any], statement: TextClause, query: bytes) -> bytes:
    """The name of a statement, prepared for as long as the session keeps its connection."""
    names: dict[TextClause, bytes] = session.info.setdefault(PREPARED, {})
    if statement not in names:
        name = b"at_once_%d" % next(NUMBERS)
        _checked(driver, driver.pgconn.prepare(name, query))
        names[statement] = name
    return names[statement]


def _checked(driver: psycopg.Connection[Any], result: PGresult) -> PGresult:
    if result.status in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
        return result
    if driver.closed:
        raise psycopg.OperationalError(result.get_error_message())
    raise error_from_result(result)


@lru_cache
def _numbered(statement: TextClause) -> tuple[bytes, tuple[str, ...]]:
    """The statement as the server reads it, and the names of its parameters in their order."""
    names = tuple(dict.fromkeys(PARAMETER.findall(statement.text)))
    return PARAMETER.sub(lambda found: f"${names.index(found[1]) + 1}", statement.text).encode(), names


@contextmanager
def _driver(session: Session) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    """The session's connection; what goes wrong on it is told in the toolkit's words."""
    connection = session.connection()
    driver = connection.connection.driver_connection
    assert isinstance(driver, psycopg.Connection)
    try:
        yield driver
    except psycopg.Error as error:
        if broken := not _is_usable(driver) or isinstance(error, ReadOnlySqlTransaction):
            driver.close()
            connection.invalidate()
        known = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError | ReadOnlySqlTransaction)
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
