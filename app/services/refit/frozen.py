"""What a refit leaves to whoever scores the votes that come after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from app.services.refit import storage
from app.services.refit.frame import Frame, PropensityKind
from app.services.refit.inputs import Inputs, Roster
from app.services.refit.population import Unit
from app.services.refit.response import Answers, Responses
from app.services.refit.scoring import DEBIASED, PLUGIN
from app.services.refit.segments import Segments
from app.services.refit.shares import Shares
from app.services.refit.tables import Counts, Table
from app.services.refit.thinned import Thinned, pack_thinned, unpack_thinned
from app.stats.debias.folds import FoldRule, Spread
from app.stats.debias.live import Apart, Nuisances, parts_behind
from app.stats.debias.moments import Moments
from app.stats.debias.one_step import Target, thinning_of
from app.stats.debias.paired import PairedCrossFit
from app.stats.debias.propensity import KeptRates
from app.stats.debias.response import ResponseRates
from app.stats.debias.support import Pairs, support_of
from app.stats.gars import Estimand, Graph
from app.stats.types import Bools, Estimate, Floats, Rule, Sample

LIVE = "live"
"""Kind of the artifacts: the whole board first, then its segments in order."""

NO_SCORES, LEARNED, DRAWS = "few_votes", "learned_propensities", "draws"
RANKINGS = "rankings"
"""Why votes of a board wait for its next refit: nothing is scored yet; propensities are learned from features; pairs
were drawn here, and rows are votes or propensities are frequencies, which answers that are out have a part in; the
pairs of a ranking are told apart by counting equal ones."""


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
    answers : to draws; None on a board that no pair had been drawn for.
    judges : names of those whose margins the models expect, in that order.
    """

    items: tuple[str, ...]
    kind: PropensityKind
    fold_rule: FoldRule
    spread: Spread
    unit: Unit
    rule: Rule
    since: int
    segments: tuple[str, ...]
    answers: Answers | None
    judges: tuple[str, ...] = ()


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
    apart : where pairs were drawn, values and corrections of these scores on their own.
    per_pair : offers for each drawn pair.
    thinned : rows drawn where not all have values and late votes change rows; None elsewhere.
    """

    nuisances: Nuisances
    every: Graph
    observed: Graph
    counts: Counts
    clusters: int
    scores: tuple[tuple[str, Pairs], ...]
    apart: dict[tuple[str, Pairs], Apart]
    per_pair: float
    thinned: Thinned | None

    def graph(self, pairs: Pairs) -> Graph:
        """The graph of that mode."""
        return self.every if pairs == "all" else self.observed


def refits_only(inputs: Inputs, frame: Frame, tables: Sequence[Table]) -> str | None:
    """Why nothing can be added to a refit but by the next one; None where votes can."""
    scored = [table for table in tables if not table.segment and table.estimator == DEBIASED]
    reasons = {
        RANKINGS: inputs.rankings is not None,
        DRAWS: _drawn(inputs) and (frame.clustering.unit != "context" or frame.kind == "estimated"),
        LEARNED: frame.kind == "estimated-lightgbm",
        NO_SCORES: not any(table.ranked.size and table.covariance is not None for table in scored),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _drawn(inputs: Inputs) -> bool:
    return inputs.draws is not None or bool(inputs.offers.drawn.any())


@dataclass(frozen=True)
class Freezer:
    """Writes down what a refit leaves.

    Parameters
    ----------
    inputs, frame, segments : of the refit.
    mu : its models.
    estimands : by name.
    """

    inputs: Inputs
    frame: Frame
    segments: Segments
    mu: PairedCrossFit
    estimands: Mapping[str, Estimand]

    def freeze(self, tables: Sequence[Table]) -> Iterator[bytes]:
        """The artifacts, the whole board's first."""
        scored: dict[str, list[Table]] = {"": []}
        for table in tables:
            if table.estimator == DEBIASED and table.covariance is not None and table.ranked.size:
                scored.setdefault(table.segment, []).append(table)
        plug_in = {(each.segment, each.estimand, each.pairs): each.value for each in tables if each.estimator == PLUGIN}
        names = sorted(scored.keys() - {""})
        answers = Responses(self.inputs).answers() if _drawn(self.inputs) else None
        board, curve = _board_header(self.frame, self.inputs), _curve(answers)
        for name in ("", *names):
            rows = self.segments.rows(name) if name else None
            sample = self.frame.view(rows)
            header, arrays = _segment(self.frame, rows, sample)
            if answers is not None:
                header["per_pair"] = self._shares(rows).per_pair()
                arrays |= self._apart(sample, scored[name])
            both = [(each, plug_in[name, each.estimand, each.pairs]) for each in scored[name]]
            arrays |= self._thinned(rows, sample, both)
            if not name:
                header["board"] = board | {"segments": names} | curve[0]
                arrays |= curve[1]
            yield storage.pack(header | {"scores": [(each.estimand, each.pairs) for each in scored[name]]}, arrays)

    @cached_property
    def _there(self) -> Inputs:
        return Responses(self.inputs).without_too_young()

    def _shares(self, rows: Bools | None) -> Shares:
        """Of the draws in some rows."""
        there, exposure, context_id = self._there, self.frame.exposure, self.frame.context_id
        if rows is not None:
            exposure, context_id = exposure.take(rows), context_id[rows]
            offers = there.offers.take(np.isin(there.offers.context, context_id))
            there = replace(there, offers=offers)
        return Shares.of(there, context_id, exposure.row)

    def _thinned(
        self, rows: Bools | None, sample: Sample, scores: Sequence[tuple[Table, Floats]]
    ) -> dict[str, NDArray[Any]]:
        """Nothing where no row changes: a vote on a battle is a row of its own."""
        thinning = thinning_of(sample, self.mu) if self.frame.clustering.unit == "context" else None
        context_id = self.frame.context_id if rows is None else self.frame.context_id[rows]
        return {} if thinning is None else pack_thinned(thinning, context_id, scores)

    def _apart(self, sample: Sample, tables: Sequence[Table]) -> dict[str, NDArray[Any]]:
        support = support_of(sample)
        targets = {
            (each.estimand, each.pairs): Target(self.estimands[each.estimand], support.graph(cast(Pairs, each.pairs)))
            for each in tables
        }
        estimates = {
            (each.estimand, each.pairs): Estimate(each.value, each.covariance, each.n_rows)
            for each in tables
            if each.covariance is not None
        }
        parts = parts_behind(sample, self.mu, targets, estimates, self.frame.clustering).values()
        return {
            "apart.total": np.array([each.value.total for each in parts]),
            "apart.square": np.array([each.value.square for each in parts]),
            "apart.correction": np.array([each.correction for each in parts]),
        }


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
        answers=_answers(board, arrays),
        judges=tuple(board.get("judges", ())),
    )


def unfreeze_segment(body: bytes) -> FrozenSegment:
    """One segment, or the whole board, from its artifact."""
    header, arrays = storage.unpack(body)
    component = arrays["component"]
    rates = KeptRates(arrays["kept"], header["kept"])
    scores = tuple((estimand, cast(Pairs, pairs)) for estimand, pairs in header["scores"])
    columns = (arrays.get(f"apart.{name}", ()) for name in ("total", "square", "correction"))
    parts = [Apart(Moments(header["rows"], *each[:2]), each[2]) for each in zip(*columns, strict=True)]
    return FrozenSegment(
        nuisances=Nuisances(arrays.get("frequency"), rates, arrays["share"], header["unit"]),
        every=Graph(arrays["every"], component),
        observed=Graph(arrays["observed"], component),
        counts=Counts(**{each.name: arrays[f"counts.{each.name}"] for each in fields(Counts)}),
        clusters=header["clusters"],
        scores=scores,
        apart=dict(zip(scores, parts, strict=True)) if parts else {},
        per_pair=header.get("per_pair", 1.0),
        thinned=unpack_thinned(arrays, scores),
    )


def _curve(answers: Answers | None) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    if answers is None:
        return {}, {}
    rates = answers.rates
    arrays = {"answers.ages": rates.ages, "answers.answered": rates.answered, "answers.pair": rates.pair}
    return {"answers": {"now": answers.now, "young": answers.young}}, arrays


def _answers(board: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Answers | None:
    if "answers" not in board:
        return None
    rates = ResponseRates(*(arrays[f"answers.{name}"] for name in ("ages", "answered", "pair")))
    return Answers(rates, **board["answers"])


def _board_header(frame: Frame, inputs: Inputs) -> dict[str, Any]:
    judges = () if inputs.judges is None else inputs.judges.judges
    return {
        "items": frame.items,
        "kind": frame.kind,
        "fold_rule": frame.fold_rule,
        "n_folds": frame.n_folds,
        "few_units": frame.spread.few.tolist(),
        "since": _since(frame, inputs.roster),
        "judges": [judge.name for judge in judges if judge.used],
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
    header = {"unit": nuisances.unit, "kept": nuisances.rates.overall, "clusters": clusters, "rows": sample.n_rows}
    return header, arrays
