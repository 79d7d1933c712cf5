"""Drawn pairs, and what was answered to requests for them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, Dated, Numbered, OnBoard


class Assignment(OnBoard, Dated, Base):
    """A drawn pair, leased to one annotator at a time.

    `state` is open (drawn, not yet handed out), leased, answered, skipped, or lapsed: its lease ended and another
    assignment of the same draw took its place.
    """

    __tablename__ = "assignments"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4, sort_order=-2)
    offer_id: Mapped[int] = mapped_column(ForeignKey("offers.id"), index=True)
    context_id: Mapped[int] = mapped_column(ForeignKey("contexts.id"))
    left_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    right_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    propensity: Mapped[float]
    policy_snapshot_id: Mapped[UUID | None] = mapped_column(ForeignKey("snapshots.id"))
    annotator: Mapped[str | None]
    state: Mapped[str]
    expires_at: Mapped[datetime | None]
    answered_at: Mapped[datetime | None]
    reason: Mapped[str | None]

    __table_args__ = (Index(None, "board_id", "state", "expires_at"), Index(None, "context_id", "annotator"))


class Draw(Numbered, OnBoard, Dated, Base):
    """What was answered to a request that may be sent again under the same key."""

    __tablename__ = "draws"

    key: Mapped[str]
    digest: Mapped[bytes]
    document: Mapped[dict[str, Any]]

    __table_args__ = (UniqueConstraint("board_id", "key"),)
