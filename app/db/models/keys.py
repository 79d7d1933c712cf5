"""Keys of callers."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, Dated, Numbered


class Key(Numbered, Dated, Base):
    """A bearer key, of which only the SHA-256 is kept."""

    __tablename__ = "keys"

    name: Mapped[str]
    prefix: Mapped[str]
    hash: Mapped[bytes] = mapped_column(unique=True)
    scopes: Mapped[list[str]]
    board_id: Mapped[int | None] = mapped_column(ForeignKey("boards.id"))
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
