"""A board's rows with everything but the outcome models: whole, or the rows of a segment or a time window."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from app.domain.boards import BoardConfig
from app.domain.outcomes import rule
from app.services.refit.eligibility import exposure_of
from app.services.refit.inputs import Inputs
from app.services.refit.population import Population, Unit, populate
from app.services.refit.response import Responses
from app.stats.debias.clusters import Clustering
from app.stats.debias.folds import FoldRule, Folds, Hashes, RowContent, Spread, assign_folds, mix
from app.stats.debias.live import Nuisances
from app.stats.debias.propensity import (
    Exposure,
    KeptRates,
    Labels,
    corrected_for_exclusions,
    eligibility_share,
    estimated_propensities,
    used_propensities,
)
from app.stats.debias.segments import segment
from app.stats.types import Bools, Floats, Ints, Sample, Votes

PropensityKind = Literal["logged", "estimated", "estimated-lightgbm"]


@dataclass(frozen=True, slots=True)
class Frame:
    """Rows, votes, folds and propensities of the active items.

    Parameters
    ----------
    items : names, sorted; K of them.
    sample : propensities given that the row is eligible: as logged, times the chance of an answer by now, nothing
        excluded; as learned from the covariates; 1 where they are frequencies.
    exposure : the active set of each offer.
    event : (e,) the first vote of each distinct (offer, ordered pair).
    labels, held : (l,) distinct labels before exclusions, and whether they are still there.
    lasting, labels_lasting : (m,) and (l,) whether their rows stay without them, see `Population`.
    designed : whether the policy behind all rows is the board's own: each pair of items that a row could show has a
        positive propensity in it.
    time : (n,) µs, when the row was offered.
    context_id : (n,) database id of the row's context, 0 where there is none.
    vote_id : (m,) database id of each vote.
    kind : whether propensities are logged, frequencies of the rows at hand, or learned from the covariates.
    fold_rule, spread : what the folds were made of, and how.
    n_folds : V.
    clustering : of the variance.
    """

    items: tuple[str, ...]
    sample: Sample
    exposure: Exposure
    event: Ints
    labels: Labels
    held: Bools
    lasting: Bools
    labels_lasting: Bools
    designed: bool
    time: Ints
    context_id: Ints
    vote_id: Ints
    kind: PropensityKind
    fold_rule: FoldRule
    spread: Spread
    n_folds: int
    clustering: Clustering

    def view(self, rows: Bools | None = None) -> Sample:
        """The sample of some rows (n,), or of all, with the propensities used there.

        Eligibility shares, and frequencies where they are estimated, are those of these very rows; so is what
        exclusions left where rows stay without their labels. Where an excluded vote has no row its rate is the board's.
        """
        chosen = np.ones(self.sample.n_rows, dtype=np.bool_) if rows is None else rows
        exposure = self.exposure.take(chosen)
        share = self._share(chosen, exposure)
        sample = segment(self.sample, chosen, propensity=self._used(chosen, exposure, share))
        return replace(sample, possible=share > 0) if self.designed else sample

    def frequencies(self, rows: Bools | None = None) -> Floats:
        """(V, K, K) how often each ordered pair was labelled, of all rows (n,) or some: in each fold, on the others.

        Where propensities are estimated as frequencies, these are what the view divides by.
        """
        chosen = np.ones(self.sample.n_rows, dtype=np.bool_) if rows is None else rows
        exposure = self.exposure.take(chosen)
        shares: Floats = self._frequencies(chosen, exposure) * self._share(chosen, exposure)
        return shares

    def nuisances(self, rows: Bools | None = None) -> Nuisances:
        """What the view's propensities are made of, for votes that come later."""
        chosen = np.ones(self.sample.n_rows, dtype=np.bool_) if rows is None else rows
        exposure, unit = self.exposure.take(chosen), self.clustering.unit
        staying = self.labels_lasting & (chosen[self.labels.row] if unit == "context" else True)
        return Nuisances(
            self._frequencies(chosen, exposure) if self.kind == "estimated" else None,
            self._rates(staying if unit == "context" else ~self.labels_lasting),
            self._share(chosen, exposure),
            unit,
        )

    def _used(self, rows: Bools, exposure: Exposure, share: Floats) -> Floats:
        votes = self.sample.votes
        used = used_propensities(self._given(rows, exposure), share, left=votes.left, right=votes.right)
        # Votes outside these rows are dropped with them; whatever stands there must only be valid.
        return np.where(rows[votes.row], used, 1.0)

    def _given(self, rows: Bools, exposure: Exposure) -> Floats:
        """(m,) propensities given that the row is eligible."""
        match self.kind:
            case "logged":
                return self._logged(rows)
            case "estimated":
                return self._estimated(rows, exposure)
            case "estimated-lightgbm":
                return self.sample.votes.propensity

    def _logged(self, rows: Bools) -> Floats:
        staying = self.labels_lasting.copy()
        staying[staying] = rows[self.labels.row[staying]]
        return np.where(self.lasting, self._kept(staying, "context"), self._kept(~self.labels_lasting, "battle"))

    def _kept(self, chosen: Bools, unit: Unit) -> Floats:
        """(m,) logged propensities after exclusions, at the rates of some labels (l,)."""
        votes, rates = self.sample.votes, self._rates(chosen)
        return corrected_for_exclusions(votes.propensity, rates, left=votes.left, right=votes.right, unit=unit)

    def _rates(self, chosen: Bools) -> KeptRates:
        labels = self.labels
        chosen_labels = Labels(labels.row[chosen], labels.left[chosen], labels.right[chosen])
        return KeptRates.of(chosen_labels, self.held[chosen], self.sample.n_items)

    def _share(self, rows: Bools, exposure: Exposure) -> Floats:
        """(K, K) share of the rows that could show both items."""
        return np.maximum(eligibility_share(exposure), self._labelled_share(rows))

    def _labelled_share(self, rows: Bools) -> Floats:
        """(K, K) share of the rows with a vote on the pair: these were eligible, whatever the items' spans say."""
        votes, size = self.sample.votes.take(rows[self.sample.votes.row]), self.sample.n_items
        cell = np.unique((votes.row * size + votes.left) * size + votes.right) % size**2
        labelled: Floats = np.bincount(cell, minlength=size**2).reshape(size, size) / max(int(rows.sum()), 1)
        return labelled

    def _estimated(self, rows: Bools, exposure: Exposure) -> Floats:
        votes, fold = self.sample.votes, self.sample.fold
        pi: Floats = self._frequencies(rows, exposure)[fold[votes.row], votes.left, votes.right]
        return pi

    def _frequencies(self, rows: Bools, exposure: Exposure) -> Floats:
        """(V, K, K) given that the row is eligible."""
        votes, fold = self.sample.votes, self.sample.fold
        first = self.event[rows[votes.row[self.event]]]
        number = np.cumsum(rows) - 1
        labels = Labels(number[votes.row[first]], votes.left[first], votes.right[first])
        return estimated_propensities(
            labels, exposure, fold=fold[rows], n_folds=self.n_folds, unit=self.clustering.unit
        )


def frame_of(inputs: Inputs, config: BoardConfig) -> Frame:
    """Decide what counts, how rows are split into folds, and which propensities are used."""
    responses = Responses(inputs)
    population = populate(responses.without_too_young(), config.unit)
    folds = _folds(population, config)
    kind = _propensity_kind(population, config)
    among = np.cumsum(inputs.roster.active) - 1
    votes, playing = among_active(_votes(population, kind, responses), inputs.roster.active)
    number = np.cumsum(playing) - 1
    before = population.labels
    heard = inputs.roster.active[before.left] & inputs.roster.active[before.right]
    return Frame(
        items=tuple(name for name, active in zip(inputs.roster.names, inputs.roster.active, strict=True) if active),
        sample=Sample(
            n_items=int(inputs.roster.active.sum()),
            rule=rule(config.categories),
            votes=votes,
            context=population.rows.context,
            fold=folds.fold,
            pattern=population.rows.pattern,
        ),
        exposure=exposure_of(population, inputs.roster),
        event=number[population.event[playing[population.event]]],
        labels=Labels(before.row[heard], among[before.left[heard]], among[before.right[heard]]),
        held=population.held[heard],
        lasting=population.lasting[playing],
        labels_lasting=population.labels_lasting[heard],
        designed=population.designed and config.acquisition.floor != 0,
        time=population.rows.time,
        context_id=population.rows.context_id,
        vote_id=population.votes.ids[playing],
        kind=kind,
        fold_rule=folds.rule,
        spread=folds.spread,
        n_folds=config.folds,
        clustering=Clustering(config.cluster, config.unit, config.population == "fixed"),
    )


def among_active(votes: Votes, active: Bools) -> tuple[Votes, Bools]:
    """The votes on two active items, numbered among these, and which of the votes (m,) they are."""
    among, playing = np.cumsum(active) - 1, active[votes.left] & active[votes.right]
    return replace(votes, left=among[votes.left], right=among[votes.right]).take(playing), playing


def _folds(population: Population, config: BoardConfig) -> Folds:
    rows = population.rows
    labelled = np.zeros(len(rows), dtype=np.bool_)
    labelled[population.row] = True
    voter = row_voters(population) if config.unit == "battle" else None
    content = RowContent(rows.context_hash, rows.offer_hash, labelled, voter)
    return assign_folds(content, config.folds, by=config.cluster)


def row_voters(population: Population) -> Hashes:
    """Hash of each row's voter, of the offer where it is anonymous."""
    voter = population.rows.offer_hash.copy()
    named = population.votes.voter != 0
    voter[population.row[named]] = mix(population.votes.voter[named])
    return voter


def _propensity_kind(population: Population, config: BoardConfig) -> PropensityKind:
    """What the board asks for; `auto` takes logged ones when every counted vote has one."""
    if config.propensity == "estimated-lightgbm":
        return config.propensity
    logged = bool(np.isfinite(population.votes.propensity).all())
    if config.propensity == "auto":
        return "logged" if logged else "estimated"
    return "logged" if config.propensity == "logged" and logged else "estimated"


def _votes(population: Population, kind: PropensityKind, responses: Responses) -> Votes:
    votes = population.votes
    pi = votes.propensity * responses.by_now(votes) if kind == "logged" else np.ones(len(votes))
    return Votes(population.row, votes.left, votes.right, votes.outcome, population.weight, population.voter, pi)
