"""Votes on their way out: all of a board, through a cursor of the server."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from app.db.menus import rankings
from app.db.models.boards import Board
from app.domain.menus import Ranking

AT_ONCE = 5_000
VOTERS = "SELECT id, client_id::text, voter FROM votes WHERE id = ANY(:ids)"

VOTES = text("""
SELECT votes.id, votes.client_id, contexts.external_id, contexts.features, contexts.text, offers.external_id,
       lefts.name, rights.name, votes.outcome, votes.voter, votes.voter_type, votes.propensity, votes.created_at,
       votes.kind, votes.ballot
FROM votes
LEFT JOIN items AS lefts ON lefts.id = votes.left_id
LEFT JOIN items AS rights ON rights.id = votes.right_id
LEFT JOIN contexts ON contexts.id = votes.context_id
LEFT JOIN offers ON offers.id = votes.offer_id
WHERE votes.board_id = :board
ORDER BY votes.id
""")


class Signature(NamedTuple):
    """A vote's public id and its voter, None where it is anonymous."""

    client_id: str
    voter: str | None


class ExportedVote(NamedTuple):
    """A stored vote with everything that it rests on."""

    number: int
    client_id: UUID
    context: str | None
    features: dict[str, Any] | None
    text: str | None
    offer: str | None
    left: str | None
    right: str | None
    outcome: int | None
    voter: str | None
    voter_type: str
    propensity: float | None
    created_at: datetime
    ranking: Ranking | None


class ExportRepository:
    """Reads boards whole."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def salt(self, board_id: int) -> UUID:
        """The board's secret."""
        return self._session.scalars(select(Board.salt).where(Board.id == board_id)).one()

    def signatures(self, numbers: Collection[int]) -> dict[int, Signature]:
        """Who signed these votes, by their numbers."""
        rows = self._session.execute(text(VOTERS), {"ids": sorted(numbers)})
        return {row[0]: Signature(row[1], row[2]) for row in rows}

    def votes(self, board_id: int) -> Iterator[list[ExportedVote]]:
        """Every vote in the order in which they came in, some thousand at a time."""
        rows = self._session.execute(VOTES, {"board": board_id}, execution_options={"yield_per": AT_ONCE})
        for part in rows.partitions():
            said = rankings(self._session, (row[-2:] for row in part))
            yield [ExportedVote._make((*row[:-2], ranking)) for row, ranking in zip(part, said, strict=True)]
