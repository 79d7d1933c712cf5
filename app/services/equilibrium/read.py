"""Equilibria of a board and of its segments, from the mean payoffs of the newest snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

from app.db.models.snapshots import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.services.equilibrium.games import (
    LEVEL,
    NOTHING,
    payoff_rows,
    played,
    robust,
    settings,
    terms_of,
)
from app.services.rankings.query import check_segment
from app.services.rankings.segments import known_segment
from app.services.refit import storage
from app.services.refit.games.means import Means, unpack_means
from app.services.refit.snapshot import MEANS, spec_hash
from app.stats.games import total_variation

Costs = Mapping[str, float]
PENDING = "pending"
FEW = "few_votes"


def equilibrium(
    work: UnitOfWork, board: Board, costs: Costs, *, segment: str | None, snapshot_id: UUID | None
) -> dict[str, Any]:
    """The document of one equilibrium, null with a status where there is none.

    Parameters
    ----------
    costs : of the board's items.
    segment : as it was asked for.
    snapshot_id : the snapshot to read; None where the board has none yet.
    """
    check_segment(segment, board.config)
    if snapshot_id is None:
        return {**_head(board, None, costs), **_Table(board, costs, ()).answer(None, segment, PENDING)}
    snapshot = work.snapshots.get(snapshot_id)
    segment = known_segment(segment, snapshot, board.config)
    kept = _kept(work, snapshot)
    means, table = kept.get(segment or ""), _Table(board, costs, snapshot.summary["items"])
    status = means.status if means else FEW if kept else PENDING
    return {**_head(board, snapshot, costs), **table.answer(means, segment, status)}


def segments(work: UnitOfWork, board: Board, costs: Costs, *, snapshot_id: UUID | None) -> dict[str, Any]:
    """The document of all levels' equilibria beside the whole board's, and how far they are apart."""
    snapshot = None if snapshot_id is None else work.snapshots.get(snapshot_id)
    kept = {} if snapshot is None else _kept(work, snapshot)
    names: list[str] = [] if snapshot is None else snapshot.summary["items"]
    levels = [] if snapshot is None else sorted(snapshot.summary["segments"].keys() & kept.keys())
    table, found = _Table(board, costs, names), [kept.get(each) for each in ("", *levels)]
    status = [PENDING if means is None else means.status for means in found]
    rows = [table.row(*each) for each in zip(found, (None, *levels), status, strict=True)]
    shares = [_shares(row["distribution"], names) for row in rows]
    distances = _distances(shares)
    return {
        **_head(board, snapshot, costs),
        "status": rows[0]["status"],
        "items": names,
        "overall": rows[0],
        "segments": [{**row, "distance": distances[0][at]} for at, row in enumerate(rows) if at],
        "matrix": shares[1:],
        "distances": [row[1:] for row in distances[1:]],
    }


def _head(board: Board, snapshot: Snapshot | None, costs: Costs) -> dict[str, Any]:
    return {
        "board": board.slug,
        "snapshot": None if snapshot is None else str(snapshot.id),
        "spec": spec_hash(board.config) if snapshot is None else snapshot.spec,
        "computed_at": None if snapshot is None else snapshot.computed_at,
        "votes_through": None if snapshot is None else snapshot.votes_through,
        "propensity": None if snapshot is None else snapshot.summary["propensity"],
        "settings": settings(board.config.equilibrium, costs),
    }


def _kept(work: UnitOfWork, snapshot: Snapshot) -> dict[str, Means]:
    """Means by segment; none in snapshots of earlier versions."""
    pieces = work.snapshots.artifacts(snapshot.id, MEANS)
    return unpack_means(storage.joined(pieces)) if pieces else {}


@dataclass(frozen=True)
class _Table:
    """Where the games of a board are played.

    Parameters
    ----------
    board : its configuration says how.
    costs : of the board's items.
    names : of the snapshot's items.
    """

    board: Board
    costs: Costs
    names: Sequence[str]

    def row(self, means: Means | None, segment: str | None, status: str) -> dict[str, Any]:
        """The equilibrium of a segment, null with a status where there is none."""
        votes = 0 if means is None else means.behind.votes
        head = {"segment": segment, "status": status, "votes": votes}
        if means is None or means.players.size < 2:
            return {**head, **NOTHING}
        players = self.players(means)
        costs = np.array([self.costs.get(item, 0.0) for item in players])
        return {**head, **played(means, players, terms_of(self.board.config.equilibrium, costs))}

    def answer(self, means: Means | None, segment: str | None, status: str) -> dict[str, Any]:
        """The same with all that it rests on."""
        _, *counts = (0, 0, 0, 0) if means is None else means.behind
        behind = dict(zip(("rows", "rows_used", "contexts"), counts, strict=True))
        row = {**self.row(means, segment, status), **behind, "interval": "sidak", "level": LEVEL}
        if means is None or means.players.size < 2:
            return {**row, "robust": None, "payoffs": []}
        players = self.players(means)
        return {**row, "robust": robust(means, players), "payoffs": payoff_rows(means, players)}

    def players(self, means: Means) -> list[str]:
        """Names of those who play."""
        return [self.names[at] for at in means.players.tolist()]


def _shares(distribution: Mapping[str, float] | None, names: Sequence[str]) -> list[float | None]:
    """By item; null where one does not play."""
    return [None if distribution is None else distribution.get(item) for item in names]


def _distances(shares: Sequence[Sequence[float | None]]) -> list[list[float | None]]:
    """Total-variation distances; null where there is no equilibrium, and 0 for the share of an item not playing."""
    known = np.array([any(share is not None for share in row) for row in shares])
    filled = np.array([[share or 0.0 for share in row] for row in shares])
    apart = total_variation(filled)
    return [
        [float(apart[at, other]) if known[at] and known[other] else None for other in range(len(shares))]
        for at in range(len(shares))
    ]
