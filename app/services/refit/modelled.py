"""Scores of estimators that believe in a Bradley-Terry model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.services.refit.frame import Frame
from app.stats.contextual_bt import Comparisons, ContextualBT, fit_regularised
from app.stats.debias.one_step import CrossFit, ranked_items
from app.stats.debias.restricted import restricted
from app.stats.debias.support import support_of
from app.stats.errors import NotIdentified
from app.stats.types import Bools, Covariates, Floats, Ints, Sample

RESTRICTED = "restricted"
CONTEXTUAL = "contextual-bt"

WORK = 2e10
"""Distinct rows × K³ that the restricted estimator may cost; beyond it a seeded draw of rows is the sample."""
SEED = 20260121


@dataclass(frozen=True, slots=True)
class Modelled:
    """Scores on the observed pairs.

    Parameters
    ----------
    items : (d,) those with a score.
    value, covariance : (d,) and (d, d), None without a valid interval.
    n_rows : rows behind them.
    """

    items: Ints
    value: Floats
    covariance: Floats | None
    n_rows: int


def contextual_model(sample: Sample, covariates: Covariates) -> ContextualBT | None:
    """Utilities linear in the covariates, fitted to a whole board; None where no vote is decisive."""
    try:
        return fit_regularised(Comparisons.of(sample, covariates.x))
    except NotIdentified:
        return None


@dataclass(frozen=True)
class Contextual:
    """A board's contextual model, found when it is first asked for.

    Parameters
    ----------
    covariates : the board's.
    find : finds it, see `contextual_model`.
    """

    covariates: Covariates
    find: Callable[[], ContextualBT | None]

    @cached_property
    def model(self) -> ContextualBT | None:
        """The model, if there is one."""
        return self.find()

    def scores(self, sample: Sample) -> Modelled | None:
        """The mean utility over a view's rows of the items that its votes connect; None where they connect none."""
        items = ranked_items(support_of(sample).observed)
        if not items.size or self.model is None:
            return None
        pattern, rows = np.unique(sample.pattern, return_counts=True)
        value = rows @ self.model.utilities(self.covariates.x[pattern])[:, items] / sample.n_rows
        return Modelled(items, value - value.mean(), None, sample.n_rows)


def restricted_scores(frame: Frame, rows: Bools | None, mu: CrossFit) -> Modelled | None:
    """The debiased estimator under the model, on a view of the frame; None where votes do not identify it."""
    drawn = affordable(frame, rows)
    frequencies = frame.frequencies(drawn)
    try:
        found = restricted(
            frame.view(drawn), mu, lambda fold, _patterns: frequencies[fold], clustering=frame.clustering
        )
    except NotIdentified:
        return None
    return Modelled(found.items, found.estimate.value, found.estimate.covariance, found.estimate.n_rows)


def affordable(frame: Frame, rows: Bools | None) -> Bools | None:
    """The rows that restricted scores are found from: these, or as many of them as the work allows."""
    sample = frame.sample
    chosen = np.ones(sample.n_rows, dtype=np.bool_) if rows is None else rows
    stride = int(sample.pattern.max(initial=0)) + 1
    distinct = np.unique((sample.fold * stride + sample.pattern)[chosen]).size
    share = WORK / max(distinct * sample.n_items**3, 1)
    if share >= 1.0:
        return rows
    thinned: Bools = chosen & (np.random.default_rng(SEED).random(sample.n_rows) < share)
    return thinned
