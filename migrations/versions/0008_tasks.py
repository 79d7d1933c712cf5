"""Tasks of refits that workers share: nothing that could not be computed again, so nothing of it is logged.

Revision ID: 0008
Revises: 0007
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

UNLOGGED = ["UNLOGGED"]
MOMENT = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "batches",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("board_id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("wanted", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("stored", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", MOMENT, server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["board_id"], ["boards.id"], name=op.f("fk_batches_board_id_boards")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
        prefixes=UNLOGGED,
    )
    op.create_table(
        "tasks",
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("claims", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("claimed_by", sa.Uuid(), nullable=True),
        sa.Column("heartbeat_at", MOMENT, nullable=True),
        sa.Column("made_at", MOMENT, nullable=True),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["batches.id"], name=op.f("fk_tasks_batch_id_batches"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("batch_id", "number", name=op.f("pk_tasks")),
        prefixes=UNLOGGED,
    )
    op.create_table(
        "task_pieces",
        sa.Column("batch_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("task", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["batch_id"], ["batches.id"], name=op.f("fk_task_pieces_batch_id_batches"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("batch_id", "kind", "task", "number", name=op.f("pk_task_pieces")),
        prefixes=UNLOGGED,
    )
    # Compressing arrays of floats takes longer than sending them.
    op.execute("ALTER TABLE task_pieces ALTER COLUMN body SET STORAGE EXTERNAL")


def downgrade() -> None:
    op.drop_table("task_pieces")
    op.drop_table("tasks")
    op.drop_table("batches")
