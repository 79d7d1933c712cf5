"""A secret of each board's own, by which exports rename its voters.

Revision ID: 0002
Revises: 0001
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("boards", sa.Column("salt", sa.Uuid(), server_default=sa.text("gen_random_uuid()"), nullable=False))


def downgrade() -> None:
    op.drop_column("boards", "salt")
