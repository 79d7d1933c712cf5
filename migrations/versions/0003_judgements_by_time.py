"""Judgements by time, so that a sweep finds the boards that have new ones.

Revision ID: 0003
Revises: 0002
"""

from __future__ import annotations

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

NAME = "ix_judgements_board_id_created_at"


def upgrade() -> None:
    op.create_index(NAME, "judgements", ["board_id", "created_at"])


def downgrade() -> None:
    op.drop_index(NAME, table_name="judgements")
