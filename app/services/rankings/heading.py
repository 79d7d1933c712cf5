"""What every answer about a board's scores begins with: what was asked, and what is behind it."""

from __future__ import annotations

from typing import Any

from app.db.models.snapshots import Snapshot
from app.domain.boards import Board
from app.services.rankings.live import Live
from app.services.rankings.query import RankingQuery
from app.services.rankings.standings import Standings

NOTES = {
    "plugin": "plug-in scores have no valid interval: they inherit the outcome model's bias",
    "restricted": "valid where a Bradley-Terry model of the decisive votes holds in every context",
    "contextual-bt": "no valid interval: utilities are taken for linear in the features, and a ridge biases them",
}
"""What an estimator's scores rest on."""


def heading(board: Board, query: RankingQuery) -> dict[str, Any]:
    """The question."""
    return {
        "board": board.slug,
        "estimand": query.estimand,
        "estimator": query.estimator,
        "pairs": query.pairs,
        "segment": query.segment,
        "interval": query.interval,
        "level": query.level,
        "from": query.since,
        "to": query.until,
        "rule": {category.name: [category.first, category.second] for category in board.config.categories},
    }


def about(query: RankingQuery, snapshot: Snapshot, standings: Standings, live: Live) -> dict[str, Any]:
    """The snapshot that answers, what came in since, and the counts of both."""
    return {
        "pairs": standings.pairs,
        "status": standings.status,
        "snapshot": str(snapshot.id),
        "spec": snapshot.spec,
        "computed_at": snapshot.computed_at,
        "votes_through": live.votes_through,
        "votes": snapshot.summary["votes"] + live.votes if query.whole else standings.votes,
        "votes_excluded": snapshot.summary["votes_excluded"],
        "rows": standings.n_rows,
        "rows_used": standings.rows_used,
        "contexts": standings.contexts,
        "propensity": snapshot.summary["propensity"],
        "live": live.document(),
        "note": NOTES.get(query.estimator),
    }


def nothing(spec: str) -> dict[str, Any]:
    """The same of a board without a snapshot."""
    unknown = dict.fromkeys(("snapshot", "computed_at", "votes_through", "propensity", "live", "note"))
    counts = {"votes": 0, "votes_excluded": {}, "rows": 0, "rows_used": 0, "contexts": 0}
    return {"status": "pending", "spec": spec, **unknown, **counts}
