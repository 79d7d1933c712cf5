"""Votes on menus: one voter ranks a menu once; and what finds them among the others.

Revision ID: 0006
Revises: 0005
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

NAME = "uq_votes_menu_slot"
SLOT = ["board_id", "context_id", "menu", "voter", "revision"]
ONLY = sa.text("menu IS NOT NULL AND voter IS NOT NULL AND context_id IS NOT NULL")


def upgrade() -> None:
    op.add_column("votes", sa.Column("menu", postgresql.ARRAY(sa.BigInteger()), nullable=True))
    op.create_index(NAME, "votes", SLOT, unique=True, postgresql_where=ONLY)
    op.create_index("ix_votes_menus", "votes", ["board_id", "id"], postgresql_where=sa.text("menu IS NOT NULL"))


def downgrade() -> None:
    op.drop_index("ix_votes_menus", "votes")
    op.drop_index(NAME, "votes")
    op.drop_column("votes", "menu")
