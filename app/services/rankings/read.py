"""Read a ranking: from the newest snapshot's tables, or for a time window from its rows and models."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.services.rankings.answer import document, pending
from app.services.rankings.found import find
from app.services.rankings.opened import Opener
from app.services.rankings.query import RankingQuery, check
from app.services.refit.snapshot import spec_hash


def ranking(
    work: UnitOfWork, board: Board, query: RankingQuery, opener: Opener, *, snapshot_id: UUID | None
) -> dict[str, Any]:
    """The document of a ranking, without the number of votes that wait.

    Parameters
    ----------
    query : checked here against the board.
    opener : keeps snapshots open between windows.
    snapshot_id : the snapshot to read; None where the board has none yet.
    """
    check(query, board.config)
    if snapshot_id is None:
        return pending(board, query, spec_hash(board.config))
    found = find(work, board, query, opener, snapshot_id=snapshot_id)
    return document(board, found)
