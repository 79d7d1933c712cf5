"""Work asked for."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, Index, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, Dated, OnBoard


class Job(OnBoard, Dated, Base):
    """Work asked for and not lost with a message."""

    __tablename__ = "jobs"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4, sort_order=-2)
    kind: Mapped[str]
    state: Mapped[str]
    progress: Mapped[float] = mapped_column(server_default=text("0"))
    attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    error: Mapped[str | None]
    snapshot_id: Mapped[UUID | None] = mapped_column(ForeignKey("snapshots.id"))
    started_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]

    __table_args__ = (Index(None, "board_id", "state"),)
