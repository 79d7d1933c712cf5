"""From a refit's result to the rows of one immutable snapshot."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID, uuid4

import numpy as np
import orjson

from app.db.marks import Fingerprint, Marks
from app.db.models.snapshots import Artifact, Score, Snapshot
from app.domain.boards import Board, BoardConfig, to_document
from app.services.refit import fitting, storage
from app.services.refit.fit import Result
from app.services.refit.frozen import LIVE
from app.services.refit.games.means import pack_means
from app.services.refit.policy import pack_plan
from app.services.refit.segments import LEAST_SEGMENT, MOST_SEGMENTS
from app.services.refit.tables import BOARD_STATUSES, FEW_CONTEXTS, FEW_VOTES, Table
from app.stats.types import Floats

METHOD = 4
"""Raised with every change of code that changes a snapshot's numbers."""

DECIDING = (
    *("unit", "population", "cluster", "outcomes", "features", "segments"),
    *("propensity", "learner", "folds", "estimands", "acquisition", "equilibrium"),
)
"""Fields of a board's configuration that decide its numbers."""

SAMPLE, FEATURISER, MODEL, PAYOFFS = "sample", "featuriser", "model", "payoffs"
DIAGNOSTICS, POLICY = "diagnostics", "policy"
MEANS, ROUTER = "means", "router"


class Gathered(NamedTuple):
    """Where a refit read.

    Parameters
    ----------
    marks : up to where.
    through : when that vote was received.
    fingerprint : of everything read.
    """

    marks: Marks
    through: datetime | None
    fingerprint: Fingerprint


class Rows(NamedTuple):
    """A snapshot as it is stored."""

    snapshot: Snapshot
    scores: list[Score]
    artifacts: list[Artifact]


def spec_document(config: BoardConfig) -> dict[str, Any]:
    """Every choice behind the numbers."""
    stored = to_document(config)
    method = {
        "version": METHOD,
        "seed": fitting.SEED,
        "few_votes": FEW_VOTES,
        "few_contexts": FEW_CONTEXTS,
        "least_segment": LEAST_SEGMENT,
        "most_segments": MOST_SEGMENTS,
    }
    return {**{name: stored[name] for name in DECIDING}, "method": method}


def spec_hash(config: BoardConfig) -> str:
    """One short name for all these choices."""
    return hashlib.sha256(orjson.dumps(spec_document(config), option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]


def rows_of_snapshot(
    board: Board, result: Result, gathered: Gathered, *, before: Sequence[Score], seconds: float
) -> Rows:
    """The rows to store; `before` are the scores of the snapshot before this one."""
    snapshot_id = uuid4()
    names = result.stored.frame.items
    retired = _retired(before, set(names))
    scores = [_score(snapshot_id, table, names, retired) for table in result.tables]
    snapshot = Snapshot(
        id=snapshot_id,
        board_id=board.id,
        watermark=gathered.marks.votes,
        votes_through=gathered.through,
        spec=spec_hash(board.config),
        spec_document=spec_document(board.config),
        digest=digest(result),
        status=_status(result),
        summary={**result.summary, **_gathered(gathered)},
        seconds=seconds,
    )
    return Rows(snapshot, scores, list(_artifacts(snapshot_id, result)))


def _gathered(gathered: Gathered) -> dict[str, Any]:
    marks = gathered.marks
    return {
        **gathered.fingerprint._asdict(),
        "marks": {"offers": marks.offers, "rules": marks.rules, "moment": marks.moment.isoformat()},
    }


def digest(result: Result) -> str:
    """SHA-256 of every number of a result: equal digests are equal to the bit."""
    total = hashlib.sha256()
    for table in sorted(result.tables, key=_key):
        total.update(orjson.dumps([*_key(table), table.status, standing_rows(table, result.stored.frame.items)]))
        total.update(_bytes(table.value))
        total.update(_bytes(table.covariance))
    for values in (result.payoffs.share, result.payoffs.error):
        total.update(_bytes(values))
    total.update(pack_means(result.means))
    total.update(result.router or b"")
    return total.hexdigest()


def _status(result: Result) -> str:
    """The first status that applies to any ranking of the whole board by default choices."""
    found = {
        table.status
        for table in result.tables
        if not table.segment and table.estimator == "debiased" and table.pairs == table.auto
    }
    found |= {table.status for table in result.tables if not found}
    return next((status for status in BOARD_STATUSES if status in found), "few_votes")


def _key(table: Table) -> tuple[str, str, str, str]:
    return table.estimand, table.estimator, table.pairs, table.segment


def _score(snapshot_id: UUID, table: Table, names: Sequence[str], retired: Mapping[str, Any]) -> Score:
    estimand, estimator, pairs, segment = _key(table)
    return Score(
        snapshot_id=snapshot_id,
        estimand=estimand,
        estimator=estimator,
        pairs=pairs,
        segment=segment,
        status=table.status,
        items=[names[at] for at in table.ranked.tolist()],
        value=table.value.tolist(),
        covariance=_bytes(table.covariance),
        details={
            "auto": table.auto,
            "contexts": table.contexts,
            "rows_used": table.rows_used,
            "standing": standing_rows(table, names),
            "retired": retired.get(repr((estimand, estimator, segment)), {}),
        },
        n_rows=table.n_rows,
    )


def standing_rows(table: Table, names: Sequence[str]) -> list[dict[str, Any]]:
    """Each active item with its counts and status, in JSON's terms."""
    standing = table.standing
    columns = zip(
        names,
        standing.votes.tolist(),
        standing.effective_votes.tolist(),
        standing.unsupported.tolist(),
        standing.status,
        strict=True,
    )
    fields = ("item", "votes", "effective_votes", "unsupported", "status")
    return [dict(zip(fields, column, strict=True)) for column in columns]


def _bytes(values: Floats | None) -> bytes:
    return b"" if values is None else np.ascontiguousarray(values, dtype=np.float64).tobytes()


def _artifacts(snapshot_id: UUID, result: Result) -> Iterator[Artifact]:
    bodies = {
        SAMPLE: storage.parts(storage.pack_stored(result.stored)),
        FEATURISER: [result.featuriser] if result.featuriser else [],
        MODEL: [model.to_bytes() for model in result.models.models],
        PAYOFFS: storage.parts(storage.pack_payoffs(result.payoffs)),
        DIAGNOSTICS: storage.parts(orjson.dumps(result.diagnostics)),
        LIVE: list(result.frozen),
        POLICY: [] if result.plan is None else storage.parts(pack_plan(result.plan)),
        MEANS: storage.parts(pack_means(result.means)),
        ROUTER: [] if result.router is None else storage.parts(result.router),
    }
    for kind, pieces in bodies.items():
        for number, body in enumerate(pieces):
            yield Artifact(snapshot_id=snapshot_id, kind=kind, fold=number, body=body)


def _retired(before: Iterable[Score], active: set[str]) -> dict[str, dict[str, Any]]:
    """Last score of items that can no longer be drawn, by ranking; what `auto` took where both modes are there."""
    last: dict[str, dict[str, Any]] = {}
    for score in sorted(before, key=lambda each: each.pairs == each.details["auto"]):
        size = len(score.items)
        variance = np.frombuffer(score.covariance).reshape(-1, size).diagonal() if score.covariance else None
        found = dict(score.details["retired"])
        for at, item in enumerate(score.items):
            error = None if variance is None else float(np.sqrt(max(variance[at], 0.0)))
            found[item] = {"score": score.value[at], "standard_error": error}
        gone = {item: each for item, each in found.items() if item not in active}
        last.setdefault(repr((score.estimand, score.estimator, score.segment)), {}).update(gone)
    return last
