"""Find what a ranking is made of: in a snapshot's tables, or computed from its rows and models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np

from app.db.models.snapshots import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.services.rankings.live import Live, with_live
from app.services.rankings.opened import Opened, Opener, check_size, estimand_named
from app.services.rankings.query import RankingQuery
from app.services.rankings.segments import known_segment
from app.services.rankings.standings import Standings, of_scores, of_table, without_scores
from app.services.refit.segments import LEAST_SEGMENT, rows_of
from app.stats.types import Bools

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FEW = "few_votes"


@dataclass(frozen=True)
class Found:
    """A snapshot's answer before it is put into words.

    Parameters
    ----------
    query : what was asked, the segment by its one name.
    snapshot : which one answers.
    standings : scores and what is said of all items.
    live : how much of it came in since the snapshot.
    """

    query: RankingQuery
    snapshot: Snapshot
    standings: Standings
    live: Live


def find(work: UnitOfWork, board: Board, query: RankingQuery, opener: Opener, *, snapshot_id: UUID) -> Found:
    """The standings behind a checked query.

    Parameters
    ----------
    opener : keeps snapshots open for windows, and for segments that were left out of the stored tables.
    snapshot_id : the snapshot to read.
    """
    snapshot = work.snapshots.get(snapshot_id)
    query = replace(query, segment=known_segment(query.segment, snapshot, board.config))
    if query.windowed:
        return _found(work, board, query, snapshot, _computed(work, board, query, opener, snapshot), stored=False)
    stored = work.snapshots.scores(snapshot.id, query.estimand, query.estimator, query.segment or "")
    standings = of_scores(stored, query.pairs)
    if standings is not None:
        return _found(work, board, query, snapshot, standings, stored=True)
    if _was_left_out(work, query, snapshot):
        standings = _computed(work, board, query, opener, snapshot)
    return _found(work, board, query, snapshot, standings or _without(work, query, snapshot), stored=False)


def _found(
    work: UnitOfWork, board: Board, query: RankingQuery, snapshot: Snapshot, standings: Standings, *, stored: bool
) -> Found:
    added, live = with_live(work, board, query, snapshot, standings, stored=stored)
    return Found(query, snapshot, added, live)


def _was_left_out(work: UnitOfWork, query: RankingQuery, snapshot: Snapshot) -> bool:
    """Whether nothing at all is stored of a segment that may have votes enough."""
    if query.segment is None or not snapshot.summary.get("segments_left_out"):
        return False
    return not work.snapshots.scores(snapshot.id, "borda", "debiased", query.segment)


def _without(work: UnitOfWork, query: RankingQuery, snapshot: Snapshot) -> Standings:
    """The items alone: of a segment with too few votes, or of an estimator that had none to work on."""
    whole = of_scores(work.snapshots.scores(snapshot.id, "borda", "debiased", ""), query.pairs)
    assert whole is not None
    return without_scores(whole, FEW, keep_counts=query.segment is None)


def _computed(work: UnitOfWork, board: Board, query: RankingQuery, opener: Opener, snapshot: Snapshot) -> Standings:
    check_size(snapshot)
    opened = opener.open(work, snapshot)
    rows = _rows(opened, query)
    if not query.windowed and rows[opened.stored.frame.sample.votes.row].sum() < LEAST_SEGMENT:
        return _without(work, query, snapshot)
    scorer = opened.scorer(estimand_named(query.estimand, board.config), estimator=query.estimator)
    tables = list(scorer.tables(query.segment or "", rows))
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
