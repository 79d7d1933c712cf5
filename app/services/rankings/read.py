"""Read a ranking: from the newest snapshot's tables, or for a time window from its rows and models."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np

from app.db.models import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.services.rankings.answer import document, pending
from app.services.rankings.opened import Opened, Opener, check_size, estimand_named
from app.services.rankings.query import RankingQuery, check, unknown_segment
from app.services.rankings.standings import Standings, of_scores, of_table, without_scores
from app.services.refit.fit import rows_of
from app.services.refit.snapshot import spec_hash
from app.stats.types import Bools

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FEW = "few_votes"


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
    snapshot = work.snapshots.get(snapshot_id)
    if query.segment is not None and query.segment not in snapshot.summary["segments"]:
        raise unknown_segment(query.segment, sorted(snapshot.summary["segments"])[:50])
    found = _window(work, board, query, opener, snapshot) if query.windowed else _stored(work, query, snapshot)
    return document(board, query, snapshot, found)


def _stored(work: UnitOfWork, query: RankingQuery, snapshot: Snapshot) -> Standings:
    found = of_scores(
        work.snapshots.scores(snapshot.id, query.estimand, query.estimator, query.segment or ""), query.pairs
    )
    if found is not None:
        return found
    return _without(work, query, snapshot)


def _without(work: UnitOfWork, query: RankingQuery, snapshot: Snapshot) -> Standings:
    """The items alone: of a level with too few votes, or of an estimator that had none to work on."""
    whole = of_scores(work.snapshots.scores(snapshot.id, "borda", "debiased", ""), query.pairs)
    assert whole is not None
    return without_scores(whole, FEW, keep_counts=query.segment is None)


def _window(work: UnitOfWork, board: Board, query: RankingQuery, opener: Opener, snapshot: Snapshot) -> Standings:
    check_size(snapshot)
    opened = opener.open(work, snapshot)
    scorer = opened.scorer(estimand_named(query.estimand, board.config))
    tables = list(scorer.tables(query.segment or "", _rows(opened, query)))
    wanted = [table for table in tables if table.estimator == query.estimator] or tables
    found = of_table(wanted, query.pairs, opened.stored.frame.items)
    return found if wanted[0].estimator == query.estimator else without_scores(found, FEW, keep_counts=True)


def _rows(opened: Opened, query: RankingQuery) -> Bools:
    """(n,) rows of the segment that were offered within the window."""
    time = opened.stored.frame.time
    rows = np.ones(time.size, dtype=np.bool_) if query.segment is None else rows_of(opened.stored, query.segment)
    if query.since is not None:
        rows = rows & (time >= (query.since - EPOCH) // MICROSECOND)
    if query.until is not None:
        rows = rows & (time < (query.until - EPOCH) // MICROSECOND)
    return rows
