"""Exclusions: rules kept with their history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import func, insert, select, text
from sqlalchemy.orm import Session

from app.db.models.exclusions import Exclusion
from app.db.models.votes import Vote
from app.domain.exclusions import SUPERSEDED

EXCLUDE = text("""
INSERT INTO exclusions (board_id, vote_id, reason, created_at)
SELECT :board, votes.id, sent.reason, clock_timestamp()
FROM unnest(CAST(:votes AS uuid[]), CAST(:reasons AS text[])) AS sent (client_id, reason)
JOIN votes ON votes.board_id = :board AND votes.client_id = sent.client_id
WHERE NOT EXISTS (SELECT FROM exclusions WHERE vote_id = votes.id AND exclusions.reason = sent.reason)
ORDER BY votes.id
RETURNING id
""")


class ExclusionView(NamedTuple):
    """A rule with the public id of the vote it names."""

    exclusion: Exclusion
    vote: UUID | None


class ExclusionRepository:
    """Exclusions of all boards.

    Whoever adds or lifts rules holds the lock of those who write votes: so no rule is dated before the marks of a
    refit that did not see it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, exclusion: Exclusion) -> Exclusion:
        """Store a rule, dated now."""
        exclusion.created_at = func.clock_timestamp()
        self._session.add(exclusion)
        self._session.flush()
        return exclusion

    def supersede(self, board_id: int, vote_ids: Sequence[int]) -> None:
        """Exclude votes that a later one of the same voter replaces."""
        rows = [{"board_id": board_id, "vote_id": vote_id, "reason": SUPERSEDED} for vote_id in vote_ids]
        self._session.execute(insert(Exclusion), rows)

    def exclude(self, board_id: int, reasons: Mapping[UUID, str]) -> int:
        """Exclude stored votes, by their public ids, that never were for this reason; how many."""
        values = {"board": board_id, "votes": list(reasons), "reasons": list(reasons.values())}
        return len(self._session.execute(EXCLUDE, values).all())

    def find(self, board_id: int, exclusion_id: int) -> Exclusion | None:
        """The rule of this number, lifted or not."""
        query = select(Exclusion).where(Exclusion.board_id == board_id, Exclusion.id == exclusion_id)
        return self._session.scalars(query).one_or_none()

    def lift(self, exclusion: Exclusion) -> None:
        """End a rule; its votes count again."""
        exclusion.lifted_at = func.clock_timestamp()
        self._session.flush()

    def page(self, board_id: int, *, after: int, limit: int) -> list[ExclusionView]:
        """The rules in force after a number, oldest first."""
        query = (
            select(Exclusion, Vote.client_id)
            .outerjoin(Vote, Vote.id == Exclusion.vote_id)
            .where(Exclusion.board_id == board_id, Exclusion.id > after, Exclusion.lifted_at.is_(None))
            .order_by(Exclusion.id)
            .limit(limit)
        )
        return [ExclusionView(exclusion, vote) for exclusion, vote in self._session.execute(query)]
