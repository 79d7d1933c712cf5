"""The first schema.

Revision ID: 0001
Revises:
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

APPEND_ONLY = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'votes are append-only: exclude them instead';
END $$
"""

GUARD = """
CREATE TRIGGER votes_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON votes
FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()
"""


def upgrade() -> None:
    op.create_table(
        "boards",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("public", sa.Boolean(), nullable=False),
        sa.Column("config", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("deleted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_boards")),
    )
    op.create_index(
        op.f("ix_boards_slug"), "boards", ["slug"], unique=True, postgresql_where=sa.text("deleted_at IS NULL")
    )
    op.create_table(
        "contexts",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("features", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("text", sa.Text(), nullable=True),
        sa.Column("vector", sa.ARRAY(sa.Double()), nullable=True),
        sa.Column("payload", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("offered", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_contexts_board_id_boards")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_contexts")),
        sa.UniqueConstraint("board_id", "external_id", name=op.f("uq_contexts_board_id_external_id")),
    )
    op.create_table(
        "items",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("licence", sa.Text(), nullable=True),
        sa.Column("cost", sa.Double(), nullable=False),
        sa.Column("label_cost", sa.Double(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_items_board_id_boards")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_items")),
        sa.UniqueConstraint("board_id", "name", name=op.f("uq_items_board_id_name")),
    )
    op.create_table(
        "keys",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("hash", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=True),
        sa.Column("last_used_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_keys_board_id_boards")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_keys")),
        sa.UniqueConstraint("hash", name=op.f("uq_keys_hash")),
    )
    op.create_table(
        "snapshots",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("watermark", sa.BigInteger(), nullable=False),
        sa.Column("votes_through", sa.DateTime(timezone=True), nullable=True),
        sa.Column("spec", sa.Text(), nullable=False),
        sa.Column("spec_document", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("summary", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("computed_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_snapshots_board_id_boards")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_snapshots")),
    )
    op.create_index(op.f("ix_snapshots_board_id_computed_at"), "snapshots", ["board_id", "computed_at"], unique=False)
    op.create_table(
        "artifacts",
        sa.Column("snapshot_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("fold", sa.SmallInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["snapshot_id"], ["snapshots.id"], name=op.f("fk_artifacts_snapshot_id_snapshots")),
        sa.PrimaryKeyConstraint("snapshot_id", "kind", "fold", name=op.f("pk_artifacts")),
    )
    op.create_table(
        "item_names",
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_item_names_board_id_boards")),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_item_names_item_id_items")),
        sa.PrimaryKeyConstraint("board_id", "name", name=op.f("pk_item_names")),
    )
    op.create_index(op.f("ix_item_names_item_id"), "item_names", ["item_id"], unique=False)
    op.create_table(
        "item_spans",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("item_id", sa.BigInteger(), nullable=False),
        sa.Column("active_from", sa.DateTime(timezone=True), nullable=False),
        sa.Column("active_to", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(["item_id"], ["items.id"], name=op.f("fk_item_spans_item_id_items")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_item_spans")),
    )
    op.create_index(
        op.f("ix_item_spans_item_id"),
        "item_spans",
        ["item_id"],
        unique=True,
        postgresql_where=sa.text("active_to IS NULL"),
    )
    op.create_table(
        "jobs",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("progress", sa.Double(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempts", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("snapshot_id", sa.Uuid(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_jobs_board_id_boards")),
        sa.ForeignKeyConstraint(["snapshot_id"], ["snapshots.id"], name=op.f("fk_jobs_snapshot_id_snapshots")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_jobs")),
    )
    op.create_index(op.f("ix_jobs_board_id_state"), "jobs", ["board_id", "state"], unique=False)
    op.create_table(
        "judgements",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("context_id", sa.BigInteger(), nullable=False),
        sa.Column("judge", sa.Text(), nullable=False),
        sa.Column("left_id", sa.BigInteger(), nullable=False),
        sa.Column("right_id", sa.BigInteger(), nullable=False),
        sa.Column("probabilities", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_judgements_board_id_boards")),
        sa.ForeignKeyConstraint(["context_id"], ["contexts.id"], name=op.f("fk_judgements_context_id_contexts")),
        sa.ForeignKeyConstraint(["left_id"], ["items.id"], name=op.f("fk_judgements_left_id_items")),
        sa.ForeignKeyConstraint(["right_id"], ["items.id"], name=op.f("fk_judgements_right_id_items")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judgements")),
        sa.UniqueConstraint(
            "board_id",
            "context_id",
            "judge",
            "left_id",
            "right_id",
            name=op.f("uq_judgements_board_id_context_id_judge_left_id_right_id"),
        ),
    )
    op.create_table(
        "offers",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("context_id", sa.BigInteger(), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_offers_board_id_boards")),
        sa.ForeignKeyConstraint(["context_id"], ["contexts.id"], name=op.f("fk_offers_context_id_contexts")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_offers")),
        sa.UniqueConstraint(
            "board_id", "context_id", "external_id", name=op.f("uq_offers_board_id_context_id_external_id")
        ),
    )
    op.create_table(
        "scores",
        sa.Column("snapshot_id", sa.Uuid(), nullable=False),
        sa.Column("estimand", sa.Text(), nullable=False),
        sa.Column("estimator", sa.Text(), nullable=False),
        sa.Column("pairs", sa.Text(), nullable=False),
        sa.Column("segment", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("items", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column("value", sa.ARRAY(sa.Double()), nullable=False),
        sa.Column("covariance", sa.LargeBinary(), nullable=False),
        sa.Column("details", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("n_rows", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["snapshot_id"], ["snapshots.id"], name=op.f("fk_scores_snapshot_id_snapshots")),
        sa.PrimaryKeyConstraint("snapshot_id", "estimand", "estimator", "pairs", "segment", name=op.f("pk_scores")),
    )
    op.create_table(
        "assignments",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("offer_id", sa.BigInteger(), nullable=False),
        sa.Column("context_id", sa.BigInteger(), nullable=False),
        sa.Column("left_id", sa.BigInteger(), nullable=False),
        sa.Column("right_id", sa.BigInteger(), nullable=False),
        sa.Column("propensity", sa.Double(), nullable=False),
        sa.Column("policy_snapshot_id", sa.Uuid(), nullable=True),
        sa.Column("annotator", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("answered_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_assignments_board_id_boards")),
        sa.ForeignKeyConstraint(["context_id"], ["contexts.id"], name=op.f("fk_assignments_context_id_contexts")),
        sa.ForeignKeyConstraint(["left_id"], ["items.id"], name=op.f("fk_assignments_left_id_items")),
        sa.ForeignKeyConstraint(["offer_id"], ["offers.id"], name=op.f("fk_assignments_offer_id_offers")),
        sa.ForeignKeyConstraint(
            ["policy_snapshot_id"], ["snapshots.id"], name=op.f("fk_assignments_policy_snapshot_id_snapshots")
        ),
        sa.ForeignKeyConstraint(["right_id"], ["items.id"], name=op.f("fk_assignments_right_id_items")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assignments")),
    )
    op.create_index(
        op.f("ix_assignments_board_id_state_expires_at"),
        "assignments",
        ["board_id", "state", "expires_at"],
        unique=False,
    )
    op.create_index(op.f("ix_assignments_offer_id"), "assignments", ["offer_id"], unique=False)
    op.create_table(
        "votes",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("client_id", sa.Uuid(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("context_id", sa.BigInteger(), nullable=True),
        sa.Column("offer_id", sa.BigInteger(), nullable=True),
        sa.Column("assignment_id", sa.Uuid(), nullable=True),
        sa.Column("left_id", sa.BigInteger(), nullable=True),
        sa.Column("right_id", sa.BigInteger(), nullable=True),
        sa.Column("outcome", sa.SmallInteger(), nullable=True),
        sa.Column("voter", sa.Text(), nullable=True),
        sa.Column("voter_type", sa.Text(), nullable=False),
        sa.Column("propensity", sa.Double(), nullable=True),
        sa.Column("revision", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("ballot", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["assignment_id"], ["assignments.id"], name=op.f("fk_votes_assignment_id_assignments")),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_votes_board_id_boards")),
        sa.ForeignKeyConstraint(["context_id"], ["contexts.id"], name=op.f("fk_votes_context_id_contexts")),
        sa.ForeignKeyConstraint(["left_id"], ["items.id"], name=op.f("fk_votes_left_id_items")),
        sa.ForeignKeyConstraint(["offer_id"], ["offers.id"], name=op.f("fk_votes_offer_id_offers")),
        sa.ForeignKeyConstraint(["right_id"], ["items.id"], name=op.f("fk_votes_right_id_items")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_votes")),
        sa.UniqueConstraint("board_id", "client_id", name=op.f("uq_votes_board_id_client_id")),
    )
    op.create_index(op.f("ix_votes_board_id_id"), "votes", ["board_id", "id"], unique=False)
    op.create_index(
        op.f("ix_votes_board_id_voter_received_at"),
        "votes",
        ["board_id", "voter", "received_at"],
        unique=False,
        postgresql_where=sa.text("voter IS NOT NULL"),
    )
    op.create_index(
        "uq_votes_slot",
        "votes",
        ["board_id", "context_id", "left_id", "right_id", "voter", "revision"],
        unique=True,
        postgresql_where=sa.text("voter IS NOT NULL AND context_id IS NOT NULL"),
    )
    op.create_table(
        "exclusions",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("vote_id", sa.BigInteger(), nullable=True),
        sa.Column("voter", sa.Text(), nullable=True),
        sa.Column("filter", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("lifted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_exclusions_board_id_boards")),
        sa.ForeignKeyConstraint(["vote_id"], ["votes.id"], name=op.f("fk_exclusions_vote_id_votes")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_exclusions")),
    )
    op.create_index(op.f("ix_exclusions_board_id_id"), "exclusions", ["board_id", "id"], unique=False)
    op.create_index(op.f("ix_exclusions_vote_id"), "exclusions", ["vote_id"], unique=False)
    op.execute(APPEND_ONLY)
    op.execute(GUARD)


def downgrade() -> None:
    op.drop_index(op.f("ix_exclusions_vote_id"), table_name="exclusions")
    op.drop_index(op.f("ix_exclusions_board_id_id"), table_name="exclusions")
    op.drop_table("exclusions")
    op.drop_index(
        "uq_votes_slot", table_name="votes", postgresql_where=sa.text("voter IS NOT NULL AND context_id IS NOT NULL")
    )
    op.drop_index(
        op.f("ix_votes_board_id_voter_received_at"), table_name="votes", postgresql_where=sa.text("voter IS NOT NULL")
    )
    op.drop_index(op.f("ix_votes_board_id_id"), table_name="votes")
    op.drop_table("votes")
    op.drop_index(op.f("ix_assignments_offer_id"), table_name="assignments")
    op.drop_index(op.f("ix_assignments_board_id_state_expires_at"), table_name="assignments")
    op.drop_table("assignments")
    op.drop_table("scores")
    op.drop_table("offers")
    op.drop_table("judgements")
    op.drop_index(op.f("ix_jobs_board_id_state"), table_name="jobs")
    op.drop_table("jobs")
    op.drop_index(op.f("ix_item_spans_item_id"), table_name="item_spans", postgresql_where=sa.text("active_to IS NULL"))
    op.drop_table("item_spans")
    op.drop_index(op.f("ix_item_names_item_id"), table_name="item_names")
    op.drop_table("item_names")
    op.drop_table("artifacts")
    op.drop_index(op.f("ix_snapshots_board_id_computed_at"), table_name="snapshots")
    op.drop_table("snapshots")
    op.drop_table("keys")
    op.drop_table("items")
    op.drop_table("contexts")
    op.drop_index(op.f("ix_boards_slug"), table_name="boards", postgresql_where=sa.text("deleted_at IS NULL"))
    op.drop_table("boards")
    op.execute("DROP FUNCTION refuse_change()")
