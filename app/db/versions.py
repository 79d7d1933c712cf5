"""Versions of boards: what decides whether an answer about a board still holds, for many boards in one statement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

VERSIONS = text("""
SELECT boards.id, slug, public, boards.updated_at, newest.id AS snapshot, coalesce(live_states.version, 0) AS live,
       coalesce(live_states.votes_through, newest.votes_through) AS votes_through,
       (SELECT max(id) FROM votes WHERE board_id = boards.id) AS last_vote
FROM boards
LEFT JOIN LATERAL (
    SELECT id, votes_through FROM snapshots WHERE board_id = boards.id ORDER BY computed_at DESC LIMIT 1
) AS newest ON true
LEFT JOIN live_states ON live_states.snapshot_id = newest.id
WHERE boards.id = ANY(:boards) AND deleted_at IS NULL
""")

ALIVE = text("SELECT id FROM keys WHERE id = ANY(:keys) AND revoked_at IS NULL")


class BoardVersion(NamedTuple):
    """A board at one moment; answers about it are equal as long as this is.

    Parameters
    ----------
    live : number of the live update that the newest snapshot's scores have taken in.
    votes_through : when the last vote in the scores came in.
    last_vote : of all, in the scores or not.
    """

    board_id: int
    slug: str
    public: bool
    updated_at: datetime
    snapshot_id: UUID | None
    live: int
    votes_through: datetime | None
    last_vote: int | None


class VersionRepository:
    """Reads versions, and which keys are still good."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def of(self, board_ids: Sequence[int]) -> dict[int, BoardVersion]:
        """The versions of these boards; a deleted board has none."""
        rows = self._session.execute(VERSIONS, {"boards": list(board_ids)})
        return {row[0]: BoardVersion(*row) for row in rows}

    def alive(self, key_ids: Sequence[int]) -> set[int]:
        """Those of the keys that are not revoked."""
        return set(self._session.scalars(ALIVE, {"keys": list(key_ids)}))
