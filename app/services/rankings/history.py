"""A ranking over time: what the snapshots of a board said, one after the other, and what changed beyond noise."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, cast
from uuid import UUID

import numpy as np

from app.db.models.snapshots import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.services.rankings.query import RankingQuery, check, refusal
from app.services.rankings.segments import known_segment
from app.services.rankings.standings import Standings, of_scores
from app.stats.inference import IntervalKind, bands, change, ranks

MOST_POINTS = 500
NOTE = (
    "snapshots share votes: where the later one rests on all rows of the earlier one, the variance of a change is the "
    "difference of their variances, else it is taken for their sum; the error is divided among items and steps"
)


@dataclass(frozen=True, slots=True)
class Point:
    """A snapshot with its ranking."""

    snapshot: Snapshot
    standings: Standings


def history(work: UnitOfWork, board: Board, query: RankingQuery, *, points: int) -> dict[str, Any]:
    """The document of a ranking's history.

    Parameters
    ----------
    query : its window is that of the snapshots, by when they were computed.
    points : snapshots to keep at most, spread over the time; the first and the last are always among them.
    """
    check(query, board.config)
    if not 2 <= points <= MOST_POINTS:
        raise refusal("points", f"a history has 2 to {MOST_POINTS} points", f"2 to {MOST_POINTS}", points)
    moments = work.snapshots.moments(board.id, query.since, query.until)
    chosen = thinned(moments, points)
    if query.segment is not None and chosen:
        query = replace(query, segment=known_segment(query.segment, work.snapshots.get(chosen[-1]), board.config))
    found = work.snapshots.series(chosen, query.estimand, query.estimator, query.segment or "")
    ranked = [(snapshot, of_scores(scores, query.pairs)) for snapshot, scores in found]
    series = [Point(snapshot, standings) for snapshot, standings in ranked if standings is not None]
    return {
        "board": board.slug,
        **{name: getattr(query, name) for name in ("estimand", "estimator", "pairs", "segment", "interval", "level")},
        "from": query.since,
        "to": query.until,
        "snapshots": len(moments),
        "note": NOTE,
        "points": [_point(point, query.segment) for point in series],
        "items": _items(series, query),
    }


def thinned(moments: Sequence[tuple[UUID, datetime]], points: int) -> list[UUID]:
    """At each of so many instants, evenly spread from the first snapshot to the last, the newest snapshot by then."""
    if len(moments) <= points:
        return [snapshot for snapshot, _ in moments]
    times = [moment.timestamp() for _, moment in moments]
    instants = np.linspace(times[0], times[-1], points)
    places = {bisect_right(times, float(instant)) - 1 for instant in instants[:-1]} | {len(times) - 1}
    return [moments[place][0] for place in sorted(places)]


def _point(point: Point, segment: str | None) -> dict[str, Any]:
    snapshot, standings = point.snapshot, point.standings
    return {
        "snapshot": str(snapshot.id),
        "computed_at": snapshot.computed_at,
        "votes_through": snapshot.votes_through,
        "spec": snapshot.spec,
        "status": standings.status,
        "votes": standings.votes if segment else snapshot.summary["votes"],
        "rows": standings.n_rows,
    }


def _items(series: Sequence[Point], query: RankingQuery) -> list[dict[str, Any]]:
    """A row of lists for each item, one entry a point; null where it has no score."""
    names = sorted({item for point in series for item in point.standings.items})
    entries = [_entries(point.standings, query) for point in series]
    steps = [_changed(*pair, query.level, len(series) - 1) for pair in pairwise(series)]
    overall = _changed(series[0], series[-1], query.level, 1) if len(series) > 1 else {}
    unknown: dict[str, Any] = dict.fromkeys(("score", "standard_error", "interval", "rank"))
    rows = []
    for item in names:
        told = [each.get(item, unknown) for each in entries]
        row = {name: [entry[name] for entry in told] for name in unknown}
        changed = [None, *(step.get(item) for step in steps)]
        rows.append({"item": item, **row, "changed_beyond_noise": overall.get(item), "steps_beyond_noise": changed})
    return sorted(rows, key=lambda row: (row["rank"][-1] is None, row["rank"][-1] or 0, row["item"]))


def _entries(standings: Standings, query: RankingQuery) -> dict[str, dict[str, Any]]:
    if not standings.items:
        return {}
    estimate, place = standings.estimate, ranks(standings.value)
    known = standings.covariance is not None
    band = bands(estimate, kind=cast(IntervalKind, query.interval) if known else "marginal", level=query.level)
    return {
        item: {
            "score": float(estimate.value[at]),
            "standard_error": float(estimate.standard_error[at]) if known else None,
            "interval": [float(band.lower[at]), float(band.upper[at])] if known else None,
            "rank": int(place[at]),
        }
        for at, item in enumerate(standings.items)
    }


def _changed(before: Point, after: Point, level: float, steps: int) -> dict[str, bool]:
    """By item; nothing where the scores are of other items, or of another estimand, or have no errors."""
    earlier, later = before.standings, after.standings
    comparable = earlier.items == later.items and earlier.pairs == later.pairs and later.items
    if not comparable or earlier.covariance is None or later.covariance is None:
        return {}
    found = change(earlier.estimate, later.estimate, nested=_nested(before, after))
    beyond = found.beyond_noise(level=level, comparisons=steps * len(later.items))
    return dict(zip(later.items, beyond.tolist(), strict=True))


def _nested(before: Point, after: Point) -> bool:
    """Whether the later snapshot rests on all rows of the earlier one, scored by the same choices."""
    earlier, later = before.snapshot, after.snapshot
    # Older snapshots do not say what was selected.
    selection = later.summary.get("selection")
    same = earlier.spec == later.spec and selection is not None and earlier.summary.get("selection") == selection
    return same and earlier.watermark <= later.watermark and before.standings.n_rows <= after.standings.n_rows
