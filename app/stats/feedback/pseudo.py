"""Debiased payoffs: cross-fitted margins, pseudo-outcomes, mean payoffs (NashEval, Sections 5.1 and 5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from app.stats.feedback.aggregators import Aggregator
from app.stats.feedback.menus import MenuLearner, MenuModel, MenuSample
from app.stats.feedback.partitions import verdicts
from app.stats.types import Covariates, Estimate, Floats, Ints


@dataclass(frozen=True, slots=True)
class Corrections:
    """What the votes say beyond the model, per row and pair (all (n, P)).

    Parameters
    ----------
    start : f(mu(x)), out of fold.
    slope : Σ_m f'_m at x.
    weight : Σ_m f'_m S^m / e^m.
    excess : Σ_m f'_m S^m / e^m (Z^m - mu^m).
    """

    start: Floats
    slope: Floats
    weight: Floats
    excess: Floats

    @property
    def pseudo_outcomes(self) -> Floats:
        """Gamma = f(mu) + Σ_m f'_m S/e (Z - mu)."""
        return self.start + self.excess

    @property
    def residuals(self) -> Floats:
        """Excess over weight, a mean of Z - mu; 0 where nothing was seen."""
        return np.divide(self.excess, self.weight, out=np.zeros(self.excess.shape), where=self.weight > 0)


def fold_models(x: Covariates, sample: MenuSample, learner: MenuLearner) -> Mapping[int, MenuModel]:
    """The model of each fold, fitted to the votes of all others."""
    fold = sample.fold[sample.votes.row]
    return {int(each): learner.fit(x, sample, fold != each, seed=int(each)) for each in np.unique(sample.fold)}


def cross_fitted(x: Covariates, sample: MenuSample, models: Mapping[int, MenuModel]) -> Floats:
    """(n, T) margins of each row by the model fitted without it."""
    margins = np.zeros((sample.n_rows, sample.menus.cells[0].size))
    for fold, model in models.items():
        rows = np.flatnonzero(sample.fold == fold)
        patterns, place = np.unique(sample.pattern[rows], return_inverse=True)
        margins[rows] = model.margins(x.take(patterns), sample.menus)[place]
    return margins


def averaged(x: Covariates, sample: MenuSample, models: Mapping[int, MenuModel]) -> Floats:
    """(u, T) margins at new covariates: the mean over the folds' models."""
    found: Floats = np.mean([model.margins(x, sample.menus) for model in models.values()], axis=0)
    return found


def corrections(sample: MenuSample, margins: Floats, aggregator: Aggregator) -> Corrections:
    """Pseudo-outcomes in their parts.

    Parameters
    ----------
    sample : rows and votes.
    margins : (n, T) mu at each row, not fitted to it.
    aggregator : f.
    """
    slopes = aggregator.slopes(margins)
    vote, cell = _seen(sample)
    row = sample.votes.row[vote]
    _, first, second = sample.menus.cells
    said = verdicts(sample.votes.tiers, first, second)[vote, cell]
    weight = slopes[row, cell] * (sample.votes.weight / sample.votes.propensity)[vote]
    pair = sample.menus.pair_of_cell[cell]
    start = aggregator.payoffs(margins)
    found = np.zeros(start.shape), np.zeros(start.shape)
    np.add.at(found[0], (row, pair), weight)
    np.add.at(found[1], (row, pair), weight * (said - margins[row, cell]))
    return Corrections(start, aggregator.total_slopes(margins), *found)


def _seen(sample: MenuSample) -> tuple[Ints, Ints]:
    """Votes and the cells of their menus."""
    menu = sample.menus.cells[0]
    size = np.bincount(menu, minlength=len(sample.menus.members))
    begin = np.cumsum(size) - size
    count = size[sample.votes.menu]
    vote = np.repeat(np.arange(len(sample.votes)), count)
    within = np.arange(vote.size) - np.repeat(np.cumsum(count) - count, count)
    return vote, begin[sample.votes.menu][vote] + within


def mean_payoffs(values: Floats, cluster: Ints) -> Estimate:
    """Mean payoffs of the pairs and their clustered covariance; `app.stats.inference.bands` makes them intervals.

    Parameters
    ----------
    values : (n, P) pseudo-outcomes.
    cluster : (n,) labels; rows of one label are dependent.
    """
    n = len(values)
    mean = values.mean(axis=0)
    _, place = np.unique(cluster, return_inverse=True)
    sums = np.zeros((place.max(initial=-1) + 1, values.shape[1]))
    np.add.at(sums, place, values - mean)
    return Estimate(mean, sums.T @ sums / n**2, n)
