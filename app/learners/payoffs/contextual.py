"""Payoffs between items at any context: outcome models, aggregator and second stage together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from app.learners.payoffs.second_stage import PayoffRegression, SecondStage, fit_payoffs
from app.stats.feedback import (
    Aggregator,
    Corrections,
    MenuLearner,
    MenuModel,
    MenuSample,
    averaged,
    corrections,
    cross_fitted,
    fold_models,
)
from app.stats.types import Covariates, Floats


@dataclass(frozen=True)
class Nuisances:
    """What is fitted once, whatever comes after it.

    Parameters
    ----------
    x : covariates.
    sample : rows and votes.
    models : one a fold.
    aggregator : f.
    corrections : pseudo-outcomes in their parts.
    """

    x: Covariates
    sample: MenuSample
    models: Mapping[int, MenuModel]
    aggregator: Aggregator
    corrections: Corrections

    def plug_in(self, x: Covariates) -> tuple[Floats, Floats]:
        """(u, P) f(mu(x)) and Σ f'_m at new covariates, mu averaged over the folds' models."""
        margins = averaged(x, self.sample, self.models)
        return self.aggregator.payoffs(margins), self.aggregator.total_slopes(margins)

    def second_stage(self, stage: SecondStage, *, seed: int) -> PayoffRegression:
        """A(x) from the pseudo-outcomes."""
        rows = self.x.x[self.sample.pattern]
        return fit_payoffs(rows, self.corrections, self.sample.context, stage=stage, seed=seed)


@dataclass(frozen=True)
class ContextualPayoffs:
    """A(x) with all that it needs.

    Parameters
    ----------
    nuisances : f(mu(x)).
    stage : what the votes add.
    """

    nuisances: Nuisances
    stage: PayoffRegression

    def payoffs(self, x: Covariates) -> Floats:
        """(u, K, K) skew-symmetric, in [-1, 1]."""
        start, slope = self.nuisances.plug_in(x)
        return self.nuisances.sample.menus.matrix(self.stage.values(x.x, start, slope))


def fit_nuisances(x: Covariates, sample: MenuSample, learner: MenuLearner, aggregator: Aggregator) -> Nuisances:
    """Fit the outcome models of all folds, and score every row by those that have not seen it."""
    models = fold_models(x, sample, learner)
    return Nuisances(x, sample, models, aggregator, corrections(sample, cross_fitted(x, sample, models), aggregator))
