"""Advisory locks: who may write to a board beside whom.

Every writer takes them in the order of this list, before it touches a row, so that no two wait for each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import IntEnum

from psycopg.errors import LockNotAvailable
from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session


class Lock(IntEnum):
    """First key of the lock; the second is the board's number."""

    VOTES = 1
    """Shared by every transaction that inserts votes, rules about them, judgements, draws, or contexts that count as
    offered.

    Who holds it alone sees each vote and offer below max(id) committed, and what is dated by now; nothing is drawn by
    a board or items that changed meanwhile."""
    REFIT = 2
    """One refit at a time."""
    VOTERS = 3
    """One writer at a time where votes per voter are counted."""
    ITEMS = 4
    """One writer at a time to the names of items."""
    LIVE = 5
    """One live update at a time."""


SHARED = text("SELECT now(), pg_advisory_xact_lock_shared(:lock, CAST(:board AS int))")
ALONE = text("SELECT pg_advisory_xact_lock(:lock, CAST(:board AS int))")


def share(session: Session, lock: Lock, board_id: int) -> datetime:
    """Hold the lock beside other sharers until the transaction ends; the time that the transaction gives its rows."""
    began: datetime = session.execute(SHARED, {"lock": int(lock), "board": board_id}).scalar_one()
    return began


def hold(session: Session, lock: Lock, board_id: int) -> None:
    """Hold the lock alone until the transaction ends."""
    session.execute(ALONE, {"lock": int(lock), "board": board_id})


def is_blocked(error: DBAPIError) -> bool:
    """Whether a connection that waits for locks only so long has waited so long for one."""
    return isinstance(error.orig, LockNotAvailable)


TRY = text("SELECT pg_try_advisory_lock(:lock, CAST(:board AS int))")
RELEASE = text("SELECT pg_advisory_unlock(:lock, CAST(:board AS int))")


class Lease:
    """A lock held by a connection of its own: it ends with the process, whatever happens to that."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def confirm(self) -> None:
        """Raise the driver's error where the connection, and the lock with it, is gone."""
        self._connection.execute(text("SELECT 1"))


@contextmanager
def lease(engine: Engine, lock: Lock, board_id: int) -> Iterator[Lease | None]:
    """Hold the lock while the block runs; None where somebody else holds it."""
    keys = {"lock": int(lock), "board": board_id}
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        if not connection.execute(TRY, keys).scalar_one():
            yield None
            return
        try:
            yield Lease(connection)
        finally:
            # With the connection the lock is gone.
            if not connection.invalidated:
                connection.execute(RELEASE, keys)
