"""Read the diagnostics that a board's newest snapshot keeps, with votes and voters by the names they may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import orjson

from app.db.exports import ExportRepository, Signature
from app.db.models.snapshots import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.errors import Missing
from app.services.exports import Pseudonyms
from app.services.rankings.found import EPOCH, MICROSECOND
from app.services.refit import storage
from app.services.refit.snapshot import DIAGNOSTICS, spec_hash

SECTIONS = (
    *("balance", "overlap", "support", "learner", "position"),
    *("intransitivity", "sensitivity", "outcomes", "voters", "drift"),
)


def diagnostics(
    work: UnitOfWork, board: Board, *, snapshot_id: UUID | None, raw_voters: bool = False
) -> dict[str, Any]:
    """The document of a board's diagnostics.

    Parameters
    ----------
    snapshot_id : the snapshot to read; None where the board has none yet.
    raw_voters : name voters as they were sent; else by the names that exports give them.
    """
    if snapshot_id is None:
        nothing = dict.fromkeys(("snapshot", "computed_at", "votes_through", *SECTIONS))
        return {
            "board": board.slug,
            "status": "pending",
            "spec": spec_hash(board.config),
            **nothing,
            "votes": 0,
            "rows": 0,
            **_heard({}),
        }
    snapshot = work.snapshots.get(snapshot_id)
    return {
        "board": board.slug,
        "status": snapshot.status,
        "spec": snapshot.spec,
        "snapshot": str(snapshot.id),
        "computed_at": snapshot.computed_at,
        "votes_through": snapshot.votes_through,
        "votes": snapshot.summary["votes"],
        "rows": snapshot.summary["rows"],
        **_heard(snapshot.summary),
        **_named(work, board, _sections(work, snapshot), raw_voters=raw_voters),
    }


def _heard(summary: Mapping[str, Any]) -> dict[str, Any]:
    """The judges, what was learned of the propensities, and votes on menus, as far as there are any."""
    return {
        "rankings": summary.get("rankings", 0),
        "rankings_left_out": summary.get("rankings_left_out", 0),
        "judges": summary.get("judges", []),
        "judges_left_out": summary.get("judges_left_out", []),
        "propensity_model": summary.get("propensity_model"),
    }


def _sections(work: UnitOfWork, snapshot: Snapshot) -> dict[str, Any]:
    pieces = work.snapshots.artifacts(snapshot.id, DIAGNOSTICS)
    if not pieces:
        raise Missing("diagnostics-missing", "only the next refit will have diagnostics", got=str(snapshot.id))
    sections: dict[str, Any] = orjson.loads(storage.joined(pieces))
    return sections


def _named(work: UnitOfWork, board: Board, sections: dict[str, Any], *, raw_voters: bool) -> dict[str, Any]:
    """The sections with public ids of votes, and voters in place of their votes."""
    heavy, judged = sections["overlap"]["heaviest"], sections["voters"]["listed"]
    exports = ExportRepository(work.session)
    signed = exports.signatures({row["vote"] for row in (*heavy, *judged)})
    names = Pseudonyms(exports.salt(board.id))

    def voter(signature: Signature) -> str | None:
        return signature.voter if raw_voters or signature.voter is None else names[signature.voter]

    weights = [row | {"vote": signed[row["vote"]].client_id} for row in heavy]
    voters = [{"voter": voter(signed[row.pop("vote")]), **row} for row in judged]
    since = sections["drift"]["since"]
    return {
        **sections,
        "drift": sections["drift"] | {"since": None if since is None else EPOCH + since * MICROSECOND},
        "overlap": sections["overlap"] | {"heaviest": weights},
        "voters": sections["voters"] | {"listed": voters},
    }
