"""What judges predict."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, Dated, Numbered, OnBoard


class Judgement(Numbered, OnBoard, Dated, Base):
    """A judge's prediction for an ordered pair: a feature, never a vote."""

    __tablename__ = "judgements"

    context_id: Mapped[int] = mapped_column(ForeignKey("contexts.id"))
    judge: Mapped[str]
    left_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    right_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    probabilities: Mapped[dict[str, Any]]

    __table_args__ = (
        UniqueConstraint("board_id", "context_id", "judge", "left_id", "right_id"),
        Index(None, "board_id", "created_at"),
    )
