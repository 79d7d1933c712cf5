"""Draws: what an annotator is asked, for how long, and what was answered to a request that may come again.

Revision ID: 0004
Revises: 0003
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("contexts", sa.Column("lot", sa.Double(), server_default=sa.text("random()"), nullable=False))
    op.create_index("ix_contexts_pool", "contexts", ["board_id", "lot"], postgresql_where=sa.text("NOT offered"))
    op.alter_column("assignments", "expires_at", nullable=True)
    op.add_column("assignments", sa.Column("reason", sa.Text(), nullable=True))
    op.create_index("ix_assignments_context_id_annotator", "assignments", ["context_id", "annotator"])
    op.create_table(
        "draws",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("document", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_draws_board_id_boards")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_draws")),
        sa.UniqueConstraint("board_id", "key", name=op.f("uq_draws_board_id_key")),
    )


def downgrade() -> None:
    op.drop_table("draws")
    op.drop_index("ix_assignments_context_id_annotator", "assignments")
    op.drop_column("assignments", "reason")
    op.execute("UPDATE assignments SET expires_at = created_at WHERE expires_at IS NULL")
    op.alter_column("assignments", "expires_at", nullable=False)
    op.drop_index("ix_contexts_pool", "contexts")
    op.drop_column("contexts", "lot")
