"""Bearer keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from app.db.models.boards import Board
from app.db.models.keys import Key
from app.domain.keys import Caller

USE_RESOLUTION = timedelta(minutes=1)
"""The last use is written no more often than this."""

BEARER = text("""
SELECT id, scopes, board_id, last_used_at IS NULL OR last_used_at < now() - CAST(:resolution AS interval)
FROM keys WHERE hash = :hash AND revoked_at IS NULL
""")

BEARERS = text("""
SELECT hash, id, scopes, board_id, last_used_at IS NULL OR last_used_at < now() - CAST(:resolution AS interval)
FROM keys WHERE hash = ANY(CAST(:hashes AS bytea[])) AND revoked_at IS NULL
""")


class KeyView(NamedTuple):
    """A key with the slug of its board."""

    key: Key
    board: str | None


class Bearer(NamedTuple):
    """A caller, and whether the last use of the key is worth writing down."""

    caller: Caller
    stale: bool


class KeyRepository:
    """Keys that are not revoked."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, key: Key) -> Key:
        """Store a key."""
        self._session.add(key)
        self._session.flush()
        return key

    def bearer(self, fingerprint: bytes) -> Bearer | None:
        """Whose key this is."""
        row = self._session.execute(BEARER, {"hash": fingerprint, "resolution": USE_RESOLUTION}).one_or_none()
        return None if row is None else Bearer(Caller(row[0], row[1], row[2]), row[3])

    def touch(self, key_id: int) -> None:
        """Write down that the key is in use."""
        self._session.execute(update(Key).where(Key.id == key_id).values(last_used_at=func.now()))

    def find(self, key_id: int) -> Key | None:
        """The key of this number."""
        return self._session.scalars(select(Key).where(Key.id == key_id, Key.revoked_at.is_(None))).one_or_none()

    def list(self, board_id: int | None) -> list[KeyView]:
        """All keys, or those bound to a board, oldest first."""
        query = select(Key, Board.slug).outerjoin(Board, Board.id == Key.board_id).where(Key.revoked_at.is_(None))
        if board_id is not None:
            query = query.where(Key.board_id == board_id)
        return [KeyView(key, board) for key, board in self._session.execute(query.order_by(Key.id))]

    def revoke(self, key: Key, at: datetime) -> None:
        """End a key."""
        key.revoked_at = at
        self._session.flush()
