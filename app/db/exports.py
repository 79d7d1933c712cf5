"""Votes on their way out: all of a board, through a cursor of the server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from app.db.models import Board

AT_ONCE = 5_000

VOTES = text("""
SELECT votes.id, votes.client_id, contexts.external_id, contexts.features, contexts.text, offers.external_id,
       lefts.name, rights.name, votes.outcome, votes.voter, votes.voter_type, votes.propensity, votes.created_at
FROM votes
JOIN items AS lefts ON lefts.id = votes.left_id
JOIN items AS rights ON rights.id = votes.right_id
LEFT JOIN contexts ON contexts.id = votes.context_id
LEFT JOIN offers ON offers.id = votes.offer_id
WHERE votes.board_id = :board
ORDER BY votes.id
""")


class ExportedVote(NamedTuple):
    """A stored vote with everything that it rests on."""

    number: int
    client_id: UUID
    context: str | None
    features: dict[str, Any] | None
    text: str | None
    offer: str | None
    left: str
    right: str
    outcome: int
    voter: str | None
    voter_type: str
    propensity: float | None
    created_at: datetime


class ExportRepository:
    """Reads boards whole."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def salt(self, board_id: int) -> UUID:
        """The board's secret."""
        return self._session.scalars(select(Board.salt).where(Board.id == board_id)).one()

    def votes(self, board_id: int) -> Iterator[list[ExportedVote]]:
        """Every vote in the order in which they came in, some thousand at a time."""
        rows = self._session.execute(VOTES, {"board": board_id}, execution_options={"yield_per": AT_ONCE})
        for part in rows.partitions():
            yield [ExportedVote(*row) for row in part]
