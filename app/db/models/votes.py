"""Votes: append-only, a trigger of the first migration refuses UPDATE and DELETE."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, ForeignKey, Index, SmallInteger, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, Numbered


class Vote(Numbered, Base):
    """A label, never changed.

    `context_id` null: a context of its own. `offer_id` null: the context's one implicit offer, or on battle boards the
    vote's own. `client_id` is the public id, `digest` the hash of what was sent, `revision` counts re-votes.

    `kind` is `pair`, or `partial` or `winner` of a vote on a menu: `ballot` then holds `menu` and `tiers` of item ids
    as they were sent, and `menu` the same ids sorted, in place of the sides and the outcome.

    Board, context and items have no constraints: nothing that a vote names is deleted, and to look each of them up once
    more would take as long as all the rest.
    """

    __tablename__ = "votes"

    board_id: Mapped[int] = mapped_column(sort_order=-1)
    client_id: Mapped[UUID]
    digest: Mapped[bytes]
    context_id: Mapped[int | None]
    offer_id: Mapped[int | None] = mapped_column(ForeignKey("offers.id"))
    assignment_id: Mapped[UUID | None] = mapped_column(ForeignKey("assignments.id"))
    left_id: Mapped[int | None]
    right_id: Mapped[int | None]
    outcome: Mapped[int | None] = mapped_column(SmallInteger)
    voter: Mapped[str | None]
    voter_type: Mapped[str]
    propensity: Mapped[float | None]
    revision: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    kind: Mapped[str]
    ballot: Mapped[dict[str, Any] | None]
    menu: Mapped[list[int] | None] = mapped_column(ARRAY(BigInteger))
    created_at: Mapped[datetime]
    received_at: Mapped[datetime] = mapped_column(server_default=func.now())

    __table_args__ = (
        UniqueConstraint("board_id", "client_id"),
        Index(
            "uq_votes_slot",
            *("board_id", "context_id", "left_id", "right_id", "voter", "revision"),
            unique=True,
            postgresql_where=text("voter IS NOT NULL AND context_id IS NOT NULL"),
        ),
        Index(
            "uq_votes_menu_slot",
            *("board_id", "context_id", "menu", "voter", "revision"),
            unique=True,
            postgresql_where=text("menu IS NOT NULL AND voter IS NOT NULL AND context_id IS NOT NULL"),
        ),
        Index("ix_votes_menus", "board_id", "id", postgresql_where=text("menu IS NOT NULL")),
        Index(None, "board_id", "id"),
        Index(None, "board_id", "voter", "received_at", postgresql_where=text("voter IS NOT NULL")),
        # Votes with a voter are found by `uq_votes_slot`.
        Index(
            None,
            *("board_id", "context_id"),
            postgresql_where=text("voter IS NULL AND context_id IS NOT NULL"),
        ),
    )
