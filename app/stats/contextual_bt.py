"""Contextual Bradley-Terry: utilities linear in the covariates, fitted to the decisive votes.

P(left | decisive, x, j, k) = σ(u_j(x) - u_k(x) + b), u_j(x) = θ_jᵀ (1, x). The baseline comes in three kinds: `plug-in`
by maximum likelihood; `regularised`, with a ridge on θ chosen by cross-validated log loss; `debiased`, which puts any
outcome model into the one-step estimator under Bradley-Terry and is `app.stats.debias.restricted`. The first two have
scores alone: an interval from their likelihood would take linear utilities for the truth and a ridge for unbiased, and
who believes in Bradley-Terry has a valid interval from the third.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit

from app.stats.debias.restricted import decisive
from app.stats.errors import NotIdentified
from app.stats.ridge import Fit, climb
from app.stats.scaling import Scaling
from app.stats.types import Bools, Floats, Ints, Sample

IDENTIFYING = 1e-4
"""Precision that maximum likelihood gets: enough to centre utilities and to keep separated items finite."""
POSITION_PRECISION = 1e-4
GRID = (300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
"""Precisions of θ to choose from, per scaled covariate and in log-odds⁻², from the strongest ridge to the weakest."""
JUDGED_VOTES = 10_000
"""Votes that choose the ridge, at most: a prior's precision does not grow with the number of votes."""


@dataclass(frozen=True, slots=True)
class Comparisons:
    """Distinct decisive verdicts.

    Parameters
    ----------
    x : (u, d) distinct covariates, NaN where missing.
    pattern, left, right : (m,) the covariates and the ordered pair.
    won : (m,) whether left won.
    fold : (m,) what cross-validation holds out together.
    weight : (m,) votes that said so.
    n_items : K.
    """

    x: Floats
    pattern: Ints
    left: Ints
    right: Ints
    won: Bools
    fold: Ints
    weight: Floats
    n_items: int

    @classmethod
    def of(cls, sample: Sample, x: Floats) -> Comparisons:
        """The decisive votes of a sample, each counted once, whatever its propensity.

        Raises
        ------
        NotIdentified
            Where there is none.
        """
        rule, votes, size = decisive(sample.rule), sample.votes, sample.n_items
        says = (rule.first + rule.second > 0)[votes.outcome]
        if not says.any():
            raise NotIdentified("no vote is decisive")
        row, won = votes.row[says], rule.first[votes.outcome[says]] > 0
        pair = votes.left[says] * size + votes.right[says]
        key = ((sample.fold[row] * len(x) + sample.pattern[row]) * size**2 + pair) * 2 + won
        distinct, weight = np.unique(key, return_counts=True)
        rest, side = np.divmod(distinct, 2)
        rest, pair = np.divmod(rest, size**2)
        fold, pattern = np.divmod(rest, len(x))
        return cls(x, pattern, pair // size, pair % size, side > 0, fold, weight.astype(np.float64), size)

    def take(self, chosen: Bools) -> Comparisons:
        """The verdicts of a mask."""
        return Comparisons(
            self.x,
            self.pattern[chosen],
            self.left[chosen],
            self.right[chosen],
            self.won[chosen],
            self.fold[chosen],
            self.weight[chosen],
            self.n_items,
        )


@dataclass(frozen=True, slots=True)
class ContextualBT:
    """A fitted model.

    Parameters
    ----------
    scaling : of the covariates.
    theta : (K, 1 + d) the intercept first; each column sums to 0, so utilities do.
    position : b, the first place's advantage in log-odds.
    precision : of the ridge on θ.
    """

    scaling: Scaling
    theta: Floats
    position: float
    precision: float

    def utilities(self, x: Floats) -> Floats:
        """(u, K) log-odds that sum to 0 at each covariate row (u, d)."""
        utilities: Floats = self.scaling.design(x) @ self.theta.T
        return utilities

    def chances(self, x: Floats) -> Floats:
        """(u, K, K) P(left | decisive) of every ordered pair; the diagonal carries no meaning."""
        utilities = self.utilities(x)
        chances: Floats = expit(utilities[:, :, None] - utilities[:, None, :] + self.position)
        return chances


def fit_plug_in(comparisons: Comparisons) -> ContextualBT:
    """Maximum likelihood, with as little of a ridge as identifies it."""
    return _fit(comparisons, IDENTIFYING)


def fit_regularised(comparisons: Comparisons, *, seed: int = 0) -> ContextualBT:
    """Ridge logistic regression, the ridge of least log loss on held-out folds.

    Parameters
    ----------
    comparisons : the verdicts.
    seed : of the votes that choose the ridge, where there are more than 10,000.
    """
    chosen = comparisons
    if len(comparisons.won) > JUDGED_VOTES:
        drawn = np.random.default_rng(seed).permutation(len(comparisons.won)) < JUDGED_VOTES
        chosen = comparisons.take(drawn)
    losses = np.sum(list(_held_out_losses(chosen)), axis=0)
    return _fit(comparisons, GRID[int(np.argmin(losses))])


def _held_out_losses(comparisons: Comparisons) -> Iterator[Floats]:
    """Of each fold, the log loss (G,) of its votes under fits to the others, along the grid."""
    scaling = Scaling.of(comparisons.x[np.unique(comparisons.pattern)])
    whole = _Verdicts.of(comparisons, scaling)
    for fold in np.unique(comparisons.fold):
        held = comparisons.fold == fold
        training, test = whole.take(~held), whole.take(held)
        fit = Fit(np.zeros(whole.signed.shape[1]), np.zeros(0))
        losses = np.zeros(len(GRID))
        for at, precision in enumerate(GRID):
            fit = climb(training, Fit(fit.w, _precisions(whole, precision)))
            losses[at] = test.value_and_gradient(fit.w)[0]
        yield losses


def _fit(comparisons: Comparisons, precision: float) -> ContextualBT:
    scaling = Scaling.of(comparisons.x[np.unique(comparisons.pattern)])
    verdicts = _Verdicts.of(comparisons, scaling)
    start = Fit(np.zeros(verdicts.signed.shape[1]), _precisions(verdicts, precision))
    found = climb(verdicts, start).w
    theta = found[:-1].reshape(comparisons.n_items, -1)
    return ContextualBT(scaling, theta - theta.mean(axis=0), float(found[-1]), precision)


def _precisions(verdicts: _Verdicts, precision: float) -> Floats:
    return np.append(np.full(verdicts.signed.shape[1] - 1, precision), POSITION_PRECISION)


@dataclass(frozen=True, slots=True)
class _Verdicts:
    """The verdicts' negative log-likelihood in (θ, b), flat in this order; see `app.stats.ridge.Likelihood`.

    Parameters
    ----------
    signed : (m, K (1 + d) + 1) the design of the log-odds of what was said: of the winner minus the loser.
    weight : (m,).
    """

    signed: sparse.csr_array
    weight: Floats

    @classmethod
    def of(cls, comparisons: Comparisons, scaling: Scaling) -> _Verdicts:
        """Lay out sparse rows: the covariates in the columns of the left item, negative in those of the right one."""
        design = scaling.design(comparisons.x)
        width, size = design.shape[1], len(comparisons.won)
        sign = np.where(comparisons.won, 1.0, -1.0)[:, None]
        seen = design[comparisons.pattern] * sign
        own = np.arange(width)
        columns = [comparisons.left[:, None] * width + own, comparisons.right[:, None] * width + own]
        last = np.full((size, 1), comparisons.n_items * width)
        index = np.concatenate([*columns, last], axis=1)
        values = np.concatenate([seen, -seen, sign], axis=1)
        start = np.arange(size + 1) * index.shape[1]
        shape = (size, comparisons.n_items * width + 1)
        return cls(sparse.csr_array((values.ravel(), index.ravel(), start), shape=shape), comparisons.weight)

    def take(self, chosen: Bools) -> _Verdicts:
        """The verdicts of a mask."""
        return _Verdicts(self.signed[chosen], self.weight[chosen])

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """The value and its gradient."""
        odds = self.signed @ w
        value = float(self.weight @ np.logaddexp(0.0, -odds))
        gradient: Floats = -(self.signed.T @ (self.weight * expit(-odds)))
        return value, gradient

    def curvature(self, w: Floats) -> Floats:
        """The diagonal of the Hessian."""
        chance = expit(self.signed @ w)
        curvature: Floats = self.signed.power(2).T @ (self.weight * chance * (1.0 - chance))
        return curvature
