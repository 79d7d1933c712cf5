"""Results of refits."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import ForeignKey, Index, SmallInteger, func
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, OnBoard


class Snapshot(OnBoard, Base):
    """The immutable result of one refit."""

    __tablename__ = "snapshots"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4, sort_order=-2)
    watermark: Mapped[int]
    votes_through: Mapped[datetime | None]
    spec: Mapped[str]
    spec_document: Mapped[dict[str, Any]]
    digest: Mapped[str]
    status: Mapped[str]
    summary: Mapped[dict[str, Any]]
    computed_at: Mapped[datetime] = mapped_column(server_default=func.now())
    seconds: Mapped[float]

    __table_args__ = (Index(None, "board_id", "computed_at"),)


class Score(Base):
    """One ranking of a snapshot; `covariance` holds float64 in C order, `segment` '' means everything."""

    __tablename__ = "scores"

    snapshot_id: Mapped[UUID] = mapped_column(ForeignKey("snapshots.id"), primary_key=True)
    estimand: Mapped[str] = mapped_column(primary_key=True)
    estimator: Mapped[str] = mapped_column(primary_key=True)
    pairs: Mapped[str] = mapped_column(primary_key=True)
    segment: Mapped[str] = mapped_column(primary_key=True)
    status: Mapped[str]
    items: Mapped[list[str]]
    value: Mapped[list[float]]
    covariance: Mapped[bytes]
    details: Mapped[dict[str, Any]]
    n_rows: Mapped[int]


class Artifact(Base):
    """Bytes that a snapshot's sample, featuriser or fold model is read back from."""

    __tablename__ = "artifacts"

    snapshot_id: Mapped[UUID] = mapped_column(ForeignKey("snapshots.id"), primary_key=True)
    kind: Mapped[str] = mapped_column(primary_key=True)
    fold: Mapped[int] = mapped_column(SmallInteger, primary_key=True)
    body: Mapped[bytes]
