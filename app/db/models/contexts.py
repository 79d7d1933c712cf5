"""Contexts and the named draw opportunities of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, Dated, Numbered, OnBoard

IN_POOL = text("NOT offered")
DATED = text("offered_at IS NOT NULL")


class Context(Numbered, OnBoard, Dated, Base):
    """What a vote was asked about; a pool member until it is offered, drawn in the order of `lot`.

    A trigger dates `offered_at`.
    """

    __tablename__ = "contexts"

    external_id: Mapped[str]
    features: Mapped[dict[str, Any]]
    text: Mapped[str | None]
    vector: Mapped[list[float] | None]
    payload: Mapped[Any] = mapped_column(JSONB(none_as_null=True), nullable=True)
    offered: Mapped[bool]
    offered_at: Mapped[datetime | None]
    lot: Mapped[float] = mapped_column(server_default=func.random())

    __table_args__ = (
        UniqueConstraint("board_id", "external_id"),
        Index("ix_contexts_pool", "board_id", "lot", postgresql_where=IN_POOL),
        Index(None, "board_id", "offered_at", postgresql_where=DATED),
    )


class Offer(Numbered, OnBoard, Dated, Base):
    """One named draw opportunity of a context."""

    __tablename__ = "offers"

    context_id: Mapped[int] = mapped_column(ForeignKey("contexts.id"))
    external_id: Mapped[str]
    source: Mapped[str]

    __table_args__ = (UniqueConstraint("board_id", "context_id", "external_id"),)
