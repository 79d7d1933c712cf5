"""Votes name boards, contexts and items without a constraint: looking each of them up took half of a vote's time.

Nothing that a vote names is ever deleted, and the transaction that stores a vote has looked it up.

Revision ID: 0007
Revises: 0006
"""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

NAMED = {"board_id": "boards", "context_id": "contexts", "left_id": "items", "right_id": "items"}


def upgrade() -> None:
    for column, table in NAMED.items():
        op.drop_constraint(f"fk_votes_{column}_{table}", "votes", type_="foreignkey")


def downgrade() -> None:
    for column, table in NAMED.items():
        op.create_foreign_key(f"fk_votes_{column}_{table}", "votes", table, [column], ["id"])
