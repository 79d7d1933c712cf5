"""Boards."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Index, func, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, Dated, Numbered


class Board(Numbered, Dated, Base):
    """A leaderboard; deleting one only dates its `deleted_at`. No answer ever holds `salt`: it renames voters."""

    __tablename__ = "boards"

    slug: Mapped[str]
    title: Mapped[str]
    public: Mapped[bool]
    config: Mapped[dict[str, Any]]
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now(), onupdate=func.now())
    deleted_at: Mapped[datetime | None]
    salt: Mapped[UUID] = mapped_column(server_default=func.gen_random_uuid())

    __table_args__ = (Index(None, "slug", unique=True, postgresql_where=text("deleted_at IS NULL")),)
