"""The document of a ranking: ranks, intervals and what else is said of each item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from app.db.models.snapshots import Snapshot
from app.domain.boards import Board
from app.services.rankings.found import Found
from app.services.rankings.heading import about, heading, nothing
from app.services.rankings.query import RankingQuery, unknown_anchor
from app.services.rankings.standings import Standings
from app.stats.inference import IntervalKind, against, bands, elo, probability_best, rank_intervals, ranks
from app.stats.types import Estimate, Floats

UNKNOWN: dict[str, Any] = dict.fromkeys(
    ("rank", "rank_interval", "score", "standard_error", "interval", "probability_best")
)


def document(board: Board, found: Found) -> dict[str, Any]:
    """Everything but the number of votes that wait."""
    query, snapshot, standings = found.query, found.snapshot, found.standings
    rows = _rows(query, standings)
    return {
        **heading(board, query),
        **_view(query),
        **about(query, snapshot, standings, found.live),
        "votes_to_flip": _flip(query, snapshot, standings),
        "rankings": rows,
        "retired": _retired(query, snapshot, standings),
    }


def pending(board: Board, query: RankingQuery, spec: str) -> dict[str, Any]:
    """The document of a board without a snapshot."""
    return {
        **heading(board, query),
        **_view(query),
        **nothing(spec),
        "votes_to_flip": None,
        "rankings": [],
        "retired": [],
    }


def _flip(query: RankingQuery, snapshot: Snapshot, standings: Standings) -> dict[str, Any] | None:
    """The fewest votes that decide who leads; known of debiased scores of the whole board in their automatic mode.

    It is the last refit's: null once live votes have changed who leads.
    """
    found = snapshot.summary.get("votes_to_flip", {}).get(query.estimand)
    if found is None or not query.whole or query.estimator != "debiased" or found["pairs"] != standings.pairs:
        return None
    if standings.items and standings.items[int(np.argmax(standings.estimate.value))] != found.get("leader"):
        return None
    return {name: found.get(name) for name in ("votes", "share", "rows_used", "leader", "challenger")}


def _view(query: RankingQuery) -> dict[str, Any]:
    return {"scale": query.scale, "anchor": query.anchor}


def _rows(query: RankingQuery, standings: Standings) -> list[dict[str, Any]]:
    numbers = _numbers(query, standings)
    order = sorted(standings.standing, key=lambda row: (row["item"] not in numbers, row["item"]))
    rows = [{"item": row["item"], **UNKNOWN, **numbers.get(row["item"], {}), **_counts(row)} for row in order]
    return sorted(rows, key=lambda row: (row["rank"] is None, -(row["score"] or 0.0)))


def _counts(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("votes", "effective_votes", "unsupported", "status")}


def _numbers(query: RankingQuery, standings: Standings) -> dict[str, dict[str, Any]]:
    """Rank, score and the rest of each ranked item."""
    if not standings.items:
        return {}
    plain = standings.estimate
    shown = _shown(query, standings)
    place = ranks(plain.value)
    found: dict[str, dict[str, Any]] = {
        item: {"rank": int(place[at]), "score": float(shown.value[at])} for at, item in enumerate(standings.items)
    }
    if standings.covariance is not None:
        for item, errors in zip(standings.items, _errors(query, plain, shown), strict=True):
            found[item] |= errors
    return found


def _errors(query: RankingQuery, plain: Estimate, shown: Estimate) -> list[dict[str, Any]]:
    """What needs a covariance; ranks and chances do not depend on the scale or the anchor."""
    band = bands(shown, kind=cast(IntervalKind, query.interval), level=query.level)
    best, worst = rank_intervals(plain, kind=ranks_by(query.interval), level=query.level)
    chance, error = probability_best(plain), shown.standard_error
    return [
        {
            "rank_interval": [int(best[at]), int(worst[at])],
            "standard_error": float(error[at]),
            "interval": [float(band.lower[at]), float(band.upper[at])],
            "probability_best": float(chance[at]),
        }
        for at in range(plain.value.size)
    ]


def ranks_by(interval: str) -> IntervalKind:
    """The kind of the differences behind ranks: what is watched stays valid when watched, all else is simultaneous."""
    return "anytime" if interval == "anytime" else "simultaneous"


def _shown(query: RankingQuery, standings: Standings) -> Estimate:
    estimate = standings.estimate
    if query.anchor is not None:
        if query.anchor not in standings.items:
            raise unknown_anchor(query.anchor, list(standings.items))
        estimate = against(estimate, standings.items.index(query.anchor))
    return elo(estimate) if query.scale == "elo" else estimate


def _retired(query: RankingQuery, snapshot: Snapshot, standings: Standings) -> list[dict[str, Any]]:
    """Items that can no longer be drawn, with the last score that they had."""
    counts = {"votes": None, "effective_votes": None, "unsupported": None, "status": "retired"}
    rows = []
    for item in snapshot.summary["retired"]:
        last = standings.retired.get(item) if query.anchor is None else None
        rows.append({"item": item, **UNKNOWN, **_last(query, last), **counts})
    return rows


def _last(query: RankingQuery, last: Mapping[str, Any] | None) -> dict[str, Any]:
    if last is None:
        return {}
    error = last["standard_error"]
    value: Floats = np.array([last["score"]])
    estimate = Estimate(value, np.array([[0.0 if error is None else error**2]]), 0)
    shown = elo(estimate) if query.scale == "elo" else estimate
    return {
        "score": float(shown.value[0]),
        "standard_error": None if error is None else float(shown.standard_error[0]),
    }
