"""Rules by which votes do not count."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, Dated, Numbered, OnBoard


class Exclusion(Numbered, OnBoard, Dated, Base):
    """A rule, evaluated when votes are gathered, until it is lifted."""

    __tablename__ = "exclusions"

    vote_id: Mapped[int | None] = mapped_column(ForeignKey("votes.id"), index=True)
    voter: Mapped[str | None]
    filter: Mapped[dict[str, Any] | None]
    reason: Mapped[str]
    lifted_at: Mapped[datetime | None]

    __table_args__ = (Index(None, "board_id", "id"),)
