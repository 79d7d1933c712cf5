"""Tasks of refits that several workers share."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ForeignKey, SmallInteger, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, Dated, OnBoard

UNLOGGED: dict[str, Any] = {"prefixes": ["UNLOGGED"]}
"""Of tables that may be empty after a crash."""


class Batch(OnBoard, Dated, Base):
    """Tasks of one stage of a refit that other workers may take; its board's refit lock is held while it lasts.

    `wanted` says that another worker waits for the state that the tasks are made of, `stored` that it is there.
    """

    __tablename__ = "batches"

    id: Mapped[UUID] = mapped_column(primary_key=True, sort_order=-2)
    version: Mapped[str]
    wanted: Mapped[bool] = mapped_column(server_default=text("false"))
    stored: Mapped[bool] = mapped_column(server_default=text("false"))

    __table_args__ = UNLOGGED


class Task(Base):
    """One of a batch: open, claimed by somebody whose heartbeat shows that he lives, or made."""

    __tablename__ = "tasks"

    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id", ondelete="CASCADE"), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    claims: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    claimed_by: Mapped[UUID | None]
    heartbeat_at: Mapped[datetime | None]
    made_at: Mapped[datetime | None]

    __table_args__ = UNLOGGED


class TaskPiece(Base):
    """A piece of a batch's state, of what a task is given, or of what was made."""

    __tablename__ = "task_pieces"

    batch_id: Mapped[UUID] = mapped_column(ForeignKey("batches.id", ondelete="CASCADE"), primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    task: Mapped[int] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    body: Mapped[bytes]

    __table_args__ = UNLOGGED
