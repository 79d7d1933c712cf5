"""What a refit leaves to whoever scores the votes that come after it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from app.services.refit import storage
from app.services.refit.frame import Frame, PropensityKind
from app.services.refit.inputs import Inputs, Roster
from app.services.refit.population import Unit
from app.services.refit.scoring import DEBIASED
from app.services.refit.segments import Segments
from app.services.refit.tables import Counts, Table
from app.stats.debias.folds import FoldRule, Spread
from app.stats.debias.live import Nuisances
from app.stats.debias.propensity import KeptRates
from app.stats.debias.support import Pairs, support_of
from app.stats.gars import Graph
from app.stats.types import Bools, Rule, Sample

LIVE = "live"
"""Kind of the artifacts: the whole board first, then its segments in order."""

NO_SCORES, LEARNED, DRAWS, JUDGES, LARGE = "few_votes", "learned_propensities", "draws", "judges", "large"
RANKINGS = "rankings"
"""Why votes of a board wait for its next refit: nothing is scored yet; propensities are learned from features; pairs
were drawn here, and how many of them are answered changes as they age; judges say what is not known of new contexts;
only some rows have a value, and a late vote may be on another; the pairs of a ranking are told apart by counting equal
ones."""


@dataclass(frozen=True, slots=True)
class FrozenBoard:
    """What all segments share.

    Parameters
    ----------
    items : names of the K that were scored.
    kind : of propensities.
    fold_rule, spread : how rows find their fold.
    unit : of the board.
    rule : credits.
    since : µs; from then on every item could be drawn.
    segments : names of those that are scored.
    """

    items: tuple[str, ...]
    kind: PropensityKind
    fold_rule: FoldRule
    spread: Spread
    unit: Unit
    rule: Rule
    since: int
    segments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FrozenSegment:
    """What rows of a segment are scored with, and what the refitted ones came to.

    Parameters
    ----------
    nuisances : of propensities.
    every, observed : the graphs.
    counts : of the refitted votes.
    clusters : fewest of the covariance's terms.
    scores : (estimand, pairs) of the scores that have a covariance.
    """

    nuisances: Nuisances
    every: Graph
    observed: Graph
    counts: Counts
    clusters: int
    scores: tuple[tuple[str, Pairs], ...]

    def graph(self, pairs: Pairs) -> Graph:
        """The graph of that mode."""
        return self.every if pairs == "all" else self.observed


def refits_only(inputs: Inputs, frame: Frame, tables: Sequence[Table]) -> str | None:
    """Why nothing can be added to a refit but by the next one; None where votes can."""
    scored = [table for table in tables if not table.segment and table.estimator == DEBIASED]
    reasons = {
        RANKINGS: inputs.rankings is not None,
        DRAWS: inputs.draws is not None or bool(inputs.offers.drawn.any()),
        JUDGES: inputs.judges is not None and inputs.judges.margins is not None,
        LEARNED: frame.kind == "estimated-lightgbm",
        NO_SCORES: not any(table.ranked.size and table.covariance is not None for table in scored),
        LARGE: frame.clustering.unit == "context" and any(table.rows_used < table.n_rows for table in scored),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def freeze(frame: Frame, roster: Roster, segments: Segments, tables: Sequence[Table]) -> Iterator[bytes]:
    """The artifacts, the whole board's first."""
    scores: dict[str, list[tuple[str, str]]] = {}
    for table in tables:
        if table.estimator == DEBIASED and table.covariance is not None and table.ranked.size:
            scores.setdefault(table.segment, []).append((table.estimand, table.pairs))
    names = sorted(scores.keys() - {""})
    board = _board_header(frame, roster) | {"segments": names}
    for name in ("", *names):
        rows = segments.rows(name) if name else None
        header, arrays = _segment(frame, rows, frame.view(rows))
        yield storage.pack(header | {"scores": scores[name]} | ({} if name else {"board": board}), arrays)


def unfreeze_board(body: bytes) -> FrozenBoard:
    """What all segments share, from the first artifact."""
    header, arrays = storage.unpack(body)
    board = header["board"]
    return FrozenBoard(
        items=tuple(board["items"]),
        kind=board["kind"],
        fold_rule=board["fold_rule"],
        spread=Spread(board["n_folds"], np.array(board["few_units"], dtype=np.uint64)),
        unit=header["unit"],
        rule=Rule(arrays["first"], arrays["second"]),
        since=board["since"],
        segments=tuple(board["segments"]),
    )


def unfreeze_segment(body: bytes) -> FrozenSegment:
    """One segment, or the whole board, from its artifact."""
    header, arrays = storage.unpack(body)
    component = arrays["component"]
    rates = KeptRates(arrays["kept"], header["kept"])
    return FrozenSegment(
        nuisances=Nuisances(arrays.get("frequency"), rates, arrays["share"], header["unit"]),
        every=Graph(arrays["every"], component),
        observed=Graph(arrays["observed"], component),
        counts=Counts(**{each.name: arrays[f"counts.{each.name}"] for each in fields(Counts)}),
        clusters=header["clusters"],
        scores=tuple((estimand, cast(Pairs, pairs)) for estimand, pairs in header["scores"]),
    )


def _board_header(frame: Frame, roster: Roster) -> dict[str, Any]:
    return {
        "items": frame.items,
        "kind": frame.kind,
        "fold_rule": frame.fold_rule,
        "n_folds": frame.n_folds,
        "few_units": frame.spread.few.tolist(),
        "since": _since(frame, roster),
    }


def _since(frame: Frame, roster: Roster) -> int:
    """From when on every item could be drawn: the last start of those that some offer came too early for."""
    exposure = frame.exposure
    late = ~exposure.active[np.unique(exposure.group)].all(axis=0)
    start = np.full(len(roster.names), np.iinfo(np.int64).min)
    np.maximum.at(start, roster.span_item, roster.span_from)
    return int(start[roster.active][late].max(initial=np.iinfo(np.int64).min))


def _segment(frame: Frame, rows: Bools | None, sample: Sample) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    nuisances, support = frame.nuisances(rows), support_of(sample)
    counts = Counts.of(sample)
    arrays = {
        "first": sample.rule.first,
        "second": sample.rule.second,
        "kept": nuisances.rates.pair,
        "share": nuisances.share,
        "every": support.every.order,
        "observed": support.observed.order,
        "component": support.observed.component,
        **{f"counts.{each.name}": getattr(counts, each.name) for each in fields(counts)},
    }
    if nuisances.frequency is not None:
        arrays["frequency"] = nuisances.frequency
    clusters = frame.clustering.least(sample)
    return {"unit": nuisances.unit, "kept": nuisances.rates.overall, "clusters": clusters}, arrays
