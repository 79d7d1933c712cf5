"""Score a view of the board: every estimand and estimator, on all and on observed pairs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from app.domain.boards import BoardConfig
from app.domain.estimands import Estimand as Named
from app.services.estimands import registered
from app.services.refit.frame import Frame
from app.services.refit.modelled import CONTEXTUAL, RESTRICTED, Contextual, Modelled, restricted_scores
from app.services.refit.tables import ItemStatus, Table, Tally
from app.stats.classical import BradleyTerryFit, clustered, count_cells, fit_bradley_terry
from app.stats.debias.one_step import CrossFit
from app.stats.debias.scores import Scores, estimate
from app.stats.debias.support import Pairs
from app.stats.errors import NotConverged
from app.stats.gars import BUILT_IN, Borda, BradleyTerry, Estimand, RankCentrality, Robust, Threshold
from app.stats.types import Bools, Estimate, Ints, Sample

CLASSICAL = "classical"
DEBIASED = "debiased"
PLUGIN = "plugin"
ESTIMATORS = (DEBIASED, CLASSICAL, RESTRICTED, CONTEXTUAL)
OBSERVED_ONLY = (CLASSICAL, RESTRICTED, CONTEXTUAL)
"""Estimators that pairs without votes add nothing to."""


def estimands_of(config: BoardConfig) -> tuple[Estimand, ...]:
    """The built-in estimands and the board's own; see `registered` for what is raised."""
    return (*BUILT_IN, *(_variant(named) for named in config.named_estimands))


def _variant(named: Named) -> Estimand:
    match named.kind:
        case "borda":
            return Borda(name=named.name)
        case "bt":
            return BradleyTerry(name=named.name)
        case "rc":
            return RankCentrality(named.damping or 0.0, name=named.name)
        case "threshold":
            return Threshold(name=named.name) if named.temperature is None else Threshold(named.temperature, named.name)
        case "robust":
            return Robust(name=named.name) if named.temperature is None else Robust(named.temperature, named.name)
        case kind:
            return registered(kind, named.name)


@dataclass(frozen=True)
class Scorer:
    """Scores views of one board.

    Parameters
    ----------
    frame : the board's rows.
    mu : the fold models.
    estimands : what is scored.
    contextual : the board's contextual model.
    consistent : whether the propensities add up.
    modelled : which of the estimators that take a model for true are wanted.
    """

    frame: Frame
    mu: CrossFit
    estimands: Sequence[Estimand]
    contextual: Contextual
    consistent: bool = True
    modelled: Collection[str] = (RESTRICTED, CONTEXTUAL)

    def tables(
        self, segment: str = "", rows: Bools | None = None, *, estimators: Collection[str] = ESTIMATORS
    ) -> Iterator[Table]:
        """The rankings of some rows (n,), or of all, by these estimators; plug-in ones come with the debiased."""
        sample = self.frame.view(rows)
        tally = Tally.of(sample, consistent=self.consistent, clustering=self.frame.clustering)
        maker = _Maker(sample, tally, segment)
        if sample.n_items < 2 or not len(sample.votes):
            yield from (maker.empty(each.name) for each in self.estimands if DEBIASED in estimators)
            return
        if DEBIASED in estimators:
            scores = estimate(sample, self.mu, self.estimands, clustering=self.frame.clustering)
            for name, score in scores.items():
                yield from maker.debiased(name, score)
        if CLASSICAL in estimators:
            yield maker.classical(classical(sample, self.frame))
        yield from self._modelled(maker, rows, {*self.modelled} & {*estimators})

    def _modelled(self, maker: _Maker, rows: Bools | None, wanted: Collection[str]) -> Iterator[Table]:
        """Restricted and contextual scores, once for every name that Bradley-Terry scores have here."""
        names = [each.name for each in self.estimands if isinstance(each, BradleyTerry)]
        if names and RESTRICTED in wanted:
            found = restricted_scores(self.frame, rows, self.mu)
            yield from (maker.modelled(name, RESTRICTED, found) for name in names)
        if names and CONTEXTUAL in wanted:
            found = self.contextual.scores(maker.sample)
            yield from (maker.modelled(name, CONTEXTUAL, found) for name in names)


@dataclass(frozen=True)
class Classical:
    """The classical fit with the board's clustering."""

    fit: BradleyTerryFit
    estimate: Estimate


def classical(sample: Sample, frame: Frame) -> Classical | None:
    """Maximum-likelihood Bradley-Terry; None where the solver gave up."""
    try:
        fit = fit_bradley_terry(count_cells(sample.votes, sample.n_items, sample.rule.n_categories), sample.rule)
    except NotConverged:
        return None
    labels = _cluster_labels(sample, frame)
    return Classical(fit, clustered(fit, sample.votes, sample.rule, *labels) if labels else fit.estimate)


def _cluster_labels(sample: Sample, frame: Frame) -> list[Ints]:
    """What votes are clustered by: the variance of pooled counts knows no rows."""
    clustering = frame.clustering
    labels = []
    if clustering.by != "voter" and not clustering.fixed:
        labels.append(sample.context[sample.votes.row])
    if clustering.by != "context":
        labels.append(sample.votes.voter)
    return labels


@dataclass(frozen=True)
class _Maker:
    """Makes the tables of one sample."""

    sample: Sample
    tally: Tally
    segment: str

    @cached_property
    def nobody(self) -> Ints:
        return np.zeros(0, dtype=np.int64)

    def empty(self, estimand: str) -> Table:
        """No item has a score."""
        unsupported = np.ones(self.sample.n_items)
        standing = self.tally.standing(["few_votes"] * self.sample.n_items, unsupported)
        return Table(
            estimand=estimand,
            estimator=DEBIASED,
            pairs="all",
            segment=self.segment,
            status="few_votes",
            ranked=self.nobody,
            value=np.zeros(0),
            covariance=np.zeros((0, 0)),
            n_rows=self.sample.n_rows,
            rows_used=self.sample.n_rows,
            contexts=self.tally.contexts,
            standing=standing,
            auto="all",
        )

    def debiased(self, name: str, scores: Scores) -> Iterator[Table]:
        """Debiased and plug-in scores; on observed pairs only where these are not all."""
        modes: tuple[Pairs, ...] = ("all",) if scores.every is scores.observed else ("all", "observed")
        for pairs in modes:
            result = scores.of(pairs)
            standing = self.tally.standing(scores.statuses(pairs), scores.unsupported)
            for estimator, value in ((DEBIASED, result.estimate.value), (PLUGIN, result.plug_in)):
                yield Table(
                    estimand=name,
                    estimator=estimator,
                    pairs=pairs,
                    segment=self.segment,
                    status=self.tally.status(standing),
                    ranked=result.items,
                    value=value,
                    covariance=self.tally.covariance(result.estimate.covariance) if estimator == DEBIASED else None,
                    n_rows=self.sample.n_rows,
                    rows_used=result.rows_used,
                    contexts=self.tally.contexts,
                    standing=standing,
                    auto=scores.auto,
                )

    def classical(self, found: Classical | None) -> Table:
        """The classical fit, on the votes alone."""
        size = self.sample.n_items
        ranked = np.zeros(size, dtype=np.bool_) if found is None else found.fit.ranked
        chosen = np.flatnonzero(ranked)
        whole = Estimate(np.zeros(size), np.zeros((size, size)), 0) if found is None else found.estimate
        separated = ~ranked if found is None else found.fit.separated
        given = ["ok" if r else "separated" if s else "disconnected" for r, s in zip(ranked, separated, strict=True)]
        standing = self.tally.standing(cast(list[ItemStatus], given), np.zeros(size))
        return Table(
            estimand="bt",
            estimator=CLASSICAL,
            pairs="observed",
            segment=self.segment,
            status=self.tally.status(standing),
            ranked=chosen,
            value=whole.value[chosen],
            covariance=self.tally.covariance(whole.covariance[np.ix_(chosen, chosen)]),
            n_rows=self.sample.n_rows,
            rows_used=self.sample.n_rows,
            contexts=self.tally.contexts,
            standing=standing,
            auto="observed",
        )

    def modelled(self, estimand: str, estimator: str, found: Modelled | None) -> Table:
        """Scores of a model, on the observed pairs; none where it is not identified."""
        nothing = replace(self.empty(estimand), estimator=estimator, pairs="observed", auto="observed")
        if found is None:
            return nothing
        inside = np.isin(np.arange(self.sample.n_items), found.items)
        given: list[ItemStatus] = ["ok" if ranked else "disconnected" for ranked in inside]
        standing = self.tally.standing(given, np.zeros(self.sample.n_items))
        return replace(
            nothing,
            status=self.tally.status(standing),
            ranked=found.items,
            value=found.value,
            covariance=self.tally.covariance(found.covariance),
            rows_used=found.n_rows,
            standing=standing,
        )
