"""Which items are surely, and which possibly, among the first k."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board, BoardConfig
from app.services.rankings.answer import ranks_by
from app.services.rankings.comparisons import JOINT_INTERVALS
from app.services.rankings.found import find
from app.services.rankings.heading import about, heading, nothing
from app.services.rankings.opened import Opener
from app.services.rankings.query import RankingQuery, check, one_of, refusal
from app.services.rankings.standings import Standings
from app.services.refit.snapshot import spec_hash
from app.stats.inference import probability_top, rank_intervals, ranks

UNKNOWN: dict[str, Any] = dict.fromkeys(("rank", "rank_interval", "chance"))


def check_top(query: RankingQuery, size: int, config: BoardConfig) -> None:
    """Refuse what has no answer, naming the parameter."""
    check(query, config)
    one_of("interval", query.interval, JOINT_INTERVALS)
    if size < 1:
        raise refusal("k", "there are at least one first places", "a whole number from 1", size)


def top(
    work: UnitOfWork, board: Board, query: RankingQuery, opener: Opener, *, size: int, snapshot_id: UUID | None
) -> dict[str, Any]:
    """The document of the first places, without the number of votes that wait.

    Parameters
    ----------
    query, size : checked with `check_top`.
    opener : keeps snapshots open between windows.
    snapshot_id : the snapshot to read; None where the board has none yet.
    """
    if snapshot_id is None:
        sets: dict[str, Any] = {"k": size, "surely": None, "possibly": None, "items": []}
        return {**heading(board, query), **nothing(spec_hash(board.config)), **sets}
    found = find(work, board, query, opener, snapshot_id=snapshot_id)
    items = len(found.standings.standing)
    if 0 < items < size:
        raise refusal("k", "the board has fewer items", f"a whole number from 1 to {items}", size)
    return {
        **heading(board, found.query),
        **about(found.query, found.snapshot, found.standings, found.live),
        "k": size,
        **_sets(found.query, found.standings, size),
    }


def _sets(query: RankingQuery, standings: Standings, size: int) -> dict[str, Any]:
    """Both sets, null where no covariance gives rank intervals, and a row for each item."""
    numbers = _numbers(query, standings, size)
    rows = [
        {"item": row["item"], **UNKNOWN, **numbers.get(row["item"], {}), "status": row["status"]}
        for row in sorted(standings.standing, key=lambda row: row["item"])
    ]
    rows.sort(key=lambda row: (row["rank"] is None, row["rank"]))
    between = {row["item"]: row["rank_interval"] for row in rows if row["rank_interval"] is not None}
    return {
        "surely": [item for item, (_, worst) in between.items() if worst <= size] if between else None,
        "possibly": [item for item, (best, _) in between.items() if best <= size] if between else None,
        "items": rows,
    }


def _numbers(query: RankingQuery, standings: Standings, size: int) -> dict[str, dict[str, Any]]:
    estimate = standings.estimate
    place = ranks(estimate.value)
    found = {item: {"rank": int(place[at])} for at, item in enumerate(standings.items)}
    if standings.covariance is None or not standings.items:
        return found
    best, worst = rank_intervals(estimate, kind=ranks_by(query.interval), level=query.level)
    chance = probability_top(estimate, size)
    return {
        item: {**found[item], "rank_interval": [int(best[at]), int(worst[at])], "chance": float(chance[at])}
        for at, item in enumerate(standings.items)
    }
