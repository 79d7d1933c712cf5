"""Items, their names and the times during which they could be drawn."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, Dated, Numbered, OnBoard


class Item(Numbered, OnBoard, Dated, Base):
    """What is compared: usually a model."""

    __tablename__ = "items"

    name: Mapped[str]
    title: Mapped[str]
    organisation: Mapped[str | None]
    url: Mapped[str | None]
    licence: Mapped[str | None]
    cost: Mapped[float]
    label_cost: Mapped[float]

    __table_args__ = (UniqueConstraint("board_id", "name"),)


class ItemName(OnBoard, Base):
    """A name that votes may use for an item: its own or an alias."""

    __tablename__ = "item_names"

    board_id: Mapped[int] = mapped_column(ForeignKey("boards.id"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"), index=True)


class ItemSpan(Numbered, Base):
    """A time during which an item could be drawn; an item is active while its last span is open."""

    __tablename__ = "item_spans"

    item_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    active_from: Mapped[datetime]
    active_to: Mapped[datetime | None]

    __table_args__ = (Index(None, "item_id", unique=True, postgresql_where=text("active_to IS NULL")),)
