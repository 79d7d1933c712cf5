"""Live updates between refits: their sums, and what finds the rows that change.

Revision ID: 0005
Revises: 0004
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# The wall clock, not the start of the transaction: whoever waits for the writers sees all earlier dates.
DATE = """
CREATE FUNCTION date_offer() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.offered_at := clock_timestamp();
    RETURN NEW;
END $$
"""
DATING = """
CREATE TRIGGER contexts_offered_at BEFORE INSERT OR UPDATE OF offered ON contexts
FOR EACH ROW WHEN (NEW.offered AND NEW.offered_at IS NULL) EXECUTE FUNCTION date_offer()
"""
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("contexts", sa.Column("offered_at", MOMENT, nullable=True))
    op.execute("UPDATE contexts SET offered_at = created_at WHERE offered")
    op.execute(DATE)
    op.execute(DATING)
    offered, anonymous = sa.text("offered_at IS NOT NULL"), sa.text("voter IS NULL AND context_id IS NOT NULL")
    op.create_index("ix_contexts_board_id_offered_at", "contexts", ["board_id", "offered_at"], postgresql_where=offered)
    op.create_index("ix_votes_board_id_context_id", "votes", ["board_id", "context_id"], postgresql_where=anonymous)
    op.create_table(
        "live_states",
        sa.Column("snapshot_id", sa.Uuid(), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("votes", sa.BigInteger(), nullable=False),
        sa.Column("offers", sa.BigInteger(), nullable=False),
        sa.Column("moment", MOMENT, nullable=False),
        sa.Column("votes_through", MOMENT, nullable=True),
        sa.Column("seen", sa.BigInteger(), nullable=False),
        sa.Column("counted", sa.BigInteger(), nullable=False),
        sa.Column("excluded", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("document", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=False),
        sa.Column("updated_at", MOMENT, server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_live_states_board_id_boards")),
        sa.ForeignKeyConstraint(["snapshot_id"], ["snapshots.id"], name=op.f("fk_live_states_snapshot_id_snapshots")),
        sa.PrimaryKeyConstraint("snapshot_id", name=op.f("pk_live_states")),
    )
    op.create_index("ix_live_states_board_id", "live_states", ["board_id"])
    op.create_table(
        "live_sums",
        sa.Column("snapshot_id", sa.Uuid(), nullable=False),
        sa.Column("segment", sa.Text(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["snapshot_id"], ["snapshots.id"], name=op.f("fk_live_sums_snapshot_id_snapshots")),
        sa.PrimaryKeyConstraint("snapshot_id", "segment", name=op.f("pk_live_sums")),
    )


def downgrade() -> None:
    op.drop_table("live_sums")
    op.drop_table("live_states")
    op.drop_index("ix_votes_board_id_context_id", "votes")
    op.drop_index("ix_contexts_board_id_offered_at", "contexts")
    op.execute("DROP TRIGGER contexts_offered_at ON contexts")
    op.execute("DROP FUNCTION date_offer")
    op.drop_column("contexts", "offered_at")
