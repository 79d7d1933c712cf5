"""What came in since a refit."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKey, Index, func
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, OnBoard


class LiveState(OnBoard, Base):
    """What came in since a refit and is in the rankings already: up to where, and how much of it.

    `moment`, `votes` and `offers` are the marks up to which it was read, `votes_through` when the last vote came in.
    `document` holds what answers say of it.
    """

    __tablename__ = "live_states"

    snapshot_id: Mapped[UUID] = mapped_column(ForeignKey("snapshots.id"), primary_key=True)
    version: Mapped[int]
    votes: Mapped[int]
    offers: Mapped[int]
    moment: Mapped[datetime]
    votes_through: Mapped[datetime | None]
    seen: Mapped[int]
    counted: Mapped[int]
    excluded: Mapped[int]
    rows: Mapped[int]
    document: Mapped[dict[str, Any]]
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())

    __table_args__ = (Index(None, "board_id"),)


class LiveSum(Base):
    """Sums over the live rows of a segment, '' for everything; see `app.services.live.sums`."""

    __tablename__ = "live_sums"

    snapshot_id: Mapped[UUID] = mapped_column(ForeignKey("snapshots.id"), primary_key=True)
    segment: Mapped[str] = mapped_column(primary_key=True)
    body: Mapped[bytes]
