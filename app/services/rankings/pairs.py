"""How well each item does against each other one."""

from __future__ import annotations

from itertools import combinations
from typing import Any
from uuid import UUID

import numpy as np

from app.db.models.snapshots import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.errors import Invalid, Missing
from app.services.refit import storage
from app.services.refit.payoffs import Payoffs
from app.services.refit.snapshot import PAYOFFS
from app.stats.inference import bands
from app.stats.types import Estimate, Ints


def pairs(work: UnitOfWork, board: Board, *, level: float, snapshot_id: UUID | None) -> dict[str, Any]:
    """The document of a board's pairs: `score` is the debiased mean share won by `first`, null on unseen pairs.

    Intervals are marginal: each holds its own share with the level.
    """
    if not 0.0 < level < 1.0:
        raise Invalid("bad-level", "the level lies strictly between 0 and 1", path="level", got=level)
    rule = {category.name: [category.first, category.second] for category in board.config.categories}
    head: dict[str, Any] = {"board": board.slug, "interval": "marginal", "level": level, "rule": rule}
    if snapshot_id is None:
        nothing = dict.fromkeys(("snapshot", "spec", "computed_at"))
        return {**head, "status": "pending", **nothing, "rows": 0, "rows_used": 0, "items": [], "pairs": []}
    snapshot = work.snapshots.get(snapshot_id)
    found = _payoffs(work, snapshot)
    items = snapshot.summary["items"]
    return {
        **head,
        "status": snapshot.status,
        "snapshot": str(snapshot.id),
        "spec": snapshot.spec,
        "computed_at": snapshot.computed_at,
        "rows": snapshot.summary["rows"],
        "rows_used": found.rows_used,
        "items": items,
        "pairs": _rows(found, items, list(rule), level),
    }


def _payoffs(work: UnitOfWork, snapshot: Snapshot) -> Payoffs:
    pieces = work.snapshots.artifacts(snapshot.id, PAYOFFS)
    if not pieces:
        raise Missing("snapshot-closed", "the pairs of this snapshot are no longer kept", got=str(snapshot.id))
    return storage.unpack_payoffs(storage.joined(pieces))


def _rows(found: Payoffs, items: list[str], outcomes: list[str], level: float) -> list[dict[str, Any]]:
    return [
        {
            "first": items[j],
            "second": items[k],
            **_share(found, j, k, level),
            "votes": int(found.counts[j, k].sum() + found.counts[k, j].sum()),
            "counts": {
                "first_left": _named(found.counts[j, k], outcomes),
                "second_left": _named(found.counts[k, j], outcomes),
            },
        }
        for j, k in combinations(range(len(items)), 2)
    ]


def _share(found: Payoffs, j: int, k: int, level: float) -> dict[str, Any]:
    share, error = float(found.share[j, k]), float(found.error[j, k])
    if np.isnan(share):
        return {"score": None, "standard_error": None, "interval": None}
    if np.isnan(error):
        return {"score": share, "standard_error": None, "interval": None}
    band = bands(Estimate(np.array([share]), np.array([[error**2]]), found.rows_used), kind="marginal", level=level)
    return {"score": share, "standard_error": error, "interval": [float(band.lower[0]), float(band.upper[0])]}


def _named(counts: Ints, outcomes: list[str]) -> dict[str, int]:
    return dict(zip(outcomes, counts.tolist(), strict=True))
