"""Snapshots: what refits found."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.db.models import Snapshot


class SnapshotRepository:
    """Snapshots of all boards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def newest(self, board_id: int) -> Snapshot | None:
        """The snapshot that rankings are read from."""
        query = select(Snapshot).where(Snapshot.board_id == board_id).order_by(Snapshot.computed_at.desc())
        return self._session.scalars(query.limit(1)).first()
