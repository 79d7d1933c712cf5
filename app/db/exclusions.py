"""Exclusions: rules kept with their history."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import func, insert, select
from sqlalchemy.orm import Session

from app.db.models import Exclusion
from app.domain.exclusions import SUPERSEDED


class ExclusionRepository:
    """Exclusions of all boards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, exclusion: Exclusion) -> Exclusion:
        """Store a rule."""
        self._session.add(exclusion)
        self._session.flush()
        return exclusion

    def supersede(self, board_id: int, vote_ids: Sequence[int]) -> None:
        """Exclude votes that a later one of the same voter replaces."""
        rows = [{"board_id": board_id, "vote_id": vote_id, "reason": SUPERSEDED} for vote_id in vote_ids]
        self._session.execute(insert(Exclusion), rows)

    def find(self, board_id: int, exclusion_id: int) -> Exclusion | None:
        """The rule of this number, lifted or not."""
        query = select(Exclusion).where(Exclusion.board_id == board_id, Exclusion.id == exclusion_id)
        return self._session.scalars(query).one_or_none()

    def lift(self, exclusion: Exclusion) -> None:
        """End a rule; its votes count again."""
        exclusion.lifted_at = func.now()
        self._session.flush()

    def page(self, board_id: int, *, after: int, limit: int) -> list[Exclusion]:
        """The rules in force after a number, oldest first."""
        query = (
            select(Exclusion)
            .where(Exclusion.board_id == board_id, Exclusion.id > after, Exclusion.lifted_at.is_(None))
            .order_by(Exclusion.id)
            .limit(limit)
        )
        return list(self._session.scalars(query))
