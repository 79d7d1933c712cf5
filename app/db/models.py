"""The tables. Votes are append-only: a trigger of the first migration refuses UPDATE and DELETE."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import BigInteger, ForeignKey, Index, SmallInteger, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.db.schema import Base, Dated, Numbered, OnBoard

UNLOGGED: dict[str, Any] = {"prefixes": ["UNLOGGED"]}
"""Of tables that may be empty after a crash."""


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


class Assignment(OnBoard, Dated, Base):
    """A drawn pair, leased to one annotator at a time.

    `state` is open (drawn, not yet handed out), leased, answered, skipped, or lapsed: its lease ended and another
    assignment of the same draw took its place.
    """

    __tablename__ = "assignments"

    id: Mapped[UUID] = mapped_column(primary_key=True, default=uuid4, sort_order=-2)
    offer_id: Mapped[int] = mapped_column(ForeignKey("offers.id"), index=True)
    context_id: Mapped[int] = mapped_column(ForeignKey("contexts.id"))
    left_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    right_id: Mapped[int] = mapped_column(ForeignKey("items.id"))
    propensity: Mapped[float]
    policy_snapshot_id: Mapped[UUID | None] = mapped_column(ForeignKey("snapshots.id"))
    annotator: Mapped[str | None]
    state: Mapped[str]
    expires_at: Mapped[datetime | None]
    answered_at: Mapped[datetime | None]
    reason: Mapped[str | None]

    __table_args__ = (Index(None, "board_id", "state", "expires_at"), Index(None, "context_id", "annotator"))


class Draw(Numbered, OnBoard, Dated, Base):
    """What was answered to a request that may be sent again under the same key."""

    __tablename__ = "draws"

    key: Mapped[str]
    digest: Mapped[bytes]
    document: Mapped[dict[str, Any]]

    __table_args__ = (UniqueConstraint("board_id", "key"),)


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


class Exclusion(Numbered, OnBoard, Dated, Base):
    """A rule, evaluated when votes are gathered, until it is lifted."""

    __tablename__ = "exclusions"

    vote_id: Mapped[int | None] = mapped_column(ForeignKey("votes.id"), index=True)
    voter: Mapped[str | None]
    filter: Mapped[dict[str, Any] | None]
    reason: Mapped[str]
    lifted_at: Mapped[datetime | None]

    __table_args__ = (Index(None, "board_id", "id"),)


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


class LiveState(OnBoard, Base):
    """What came in since a refit and is in the rankings already: up to where, and how much of it.

    `moment`, `votes` and `offers` are the marks up to which it was read, `votes_through` when the last vote came in.
    `document` holds what answers say of it.
    """

    __tablename__ = "live_states"

    snapshot_id: Mapped[UUID] = mapped_column(ForeignKey("snapshots.id"), primary_key=True)
    version: Mapped[int]
    votes: Mapped[int]
    offers: Mapped[int]
    moment: Mapped[datetime]
    votes_through: Mapped[datetime | None]
    seen: Mapped[int]
    counted: Mapped[int]
    excluded: Mapped[int]
    rows: Mapped[int]
    document: Mapped[dict[str, Any]]
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())

    __table_args__ = (Index(None, "board_id"),)


class LiveSum(Base):
    """Sums over the live rows of a segment, '' for everything; see `app.services.live.sums`."""

    __tablename__ = "live_sums"

    snapshot_id: Mapped[UUID] = mapped_column(ForeignKey("snapshots.id"), primary_key=True)
    segment: Mapped[str] = mapped_column(primary_key=True)
    body: Mapped[bytes]


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
