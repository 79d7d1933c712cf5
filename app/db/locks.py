"""Advisory locks: who may write to a board beside whom.

Every writer takes them in the order of this list, before it touches a row, so that no two wait for each other.
"""

from __future__ import annotations

from enum import IntEnum

from sqlalchemy import text
from sqlalchemy.orm import Session


class Lock(IntEnum):
    """First key of the lock; the second is the board's number."""

    VOTES = 1
    """Shared by every transaction that inserts votes. Who holds it alone sees each vote below max(id) committed."""
    REFIT = 2
    """One refit at a time."""
    VOTERS = 3
    """One writer at a time where votes per voter are counted."""
    ITEMS = 4
    """One writer at a time to the names of items."""


SHARED = text("SELECT pg_advisory_xact_lock_shared(:lock, CAST(:board AS int))")
ALONE = text("SELECT pg_advisory_xact_lock(:lock, CAST(:board AS int))")


def share(session: Session, lock: Lock, board_id: int) -> None:
    """Hold the lock beside other sharers until the transaction ends."""
    session.execute(SHARED, {"lock": int(lock), "board": board_id})


def hold(session: Session, lock: Lock, board_id: int) -> None:
    """Hold the lock alone until the transaction ends."""
    session.execute(ALONE, {"lock": int(lock), "board": board_id})
