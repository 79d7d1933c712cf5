"""The nouns of the statistical core: rules, covariates, votes, samples, models, estimates.

Letters follow DMLRank (arXiv 2601.21816): K items, C outcome categories, contexts with covariates x, an ordered
pair (j, k) with j shown first, mu_jkc(x) the chance of category c and pi_jk(x) the propensity of a label.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.stats.errors import InvalidInput

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Rule:
    """How an outcome is credited: weight w1 to the first item, w2 to the second.

    Parameters
    ----------
    first, second : (C,) non-negative weights of each category; a category with both weights 0 is
        dropped from every score (the rest is conditioned on).
    """

    first: Floats
    second: Floats

    def __post_init__(self) -> None:
        if self.first.shape != self.second.shape or self.first.ndim != 1:
            raise InvalidInput(f"weights of shape {self.first.shape} and {self.second.shape}, expected one length C")
        if (np.minimum(self.first, self.second) < 0).any() or not (self.first + self.second > 0).any():
            raise InvalidInput("weights must be non-negative and not all zero")

    @property
    def n_categories(self) -> int:
        return int(self.first.size)

    def scores(self, mu: Floats) -> Floats:
        """p = <w1, mu> / <w1 + w2, mu>: the first item's expected share.

        Parameters
        ----------
        mu : (..., C) category probabilities.

        Returns
        -------
        (...) in [0, 1]; ½ where no weight is left.
        """
        total, first = _weighted(mu, self.first + self.second), _weighted(mu, self.first)
        if total.min(initial=1.0) > 0:
            return np.divide(first, total, out=first)
        scores: Floats = np.divide(first, total, out=np.full(total.shape, 0.5), where=total > 0)
        return scores

    def gradient(self, mu: Floats) -> Floats:
        """q = dp/dmu = (w1 - p (w1 + w2)) / <w1 + w2, mu>.

        Parameters
        ----------
        mu : (..., C) category probabilities.

        Returns
        -------
        (..., C); 0 where no weight is left.
        """
        both = self.first + self.second
        total = _weighted(mu, both)[..., None]
        direction = self.first - self.scores(mu)[..., None] * both
        gradient: Floats = np.divide(direction, total, out=np.zeros(mu.shape), where=total > 0)
        return gradient

    def noise(self, mu: Floats, scores: Floats) -> Floats:
        """Σ_c mu_c q_c², the variance of <q, Y> of a label Y, as <q, mu> = 0.

        Parameters
        ----------
        mu : (..., C) category probabilities.
        scores : (...) p.

        Returns
        -------
        (...) non-negative; 0 where no weight is left.
        """
        both = self.first + self.second
        noise = np.zeros(scores.shape)
        for category, (first, weight) in enumerate(zip(self.first.tolist(), both.tolist(), strict=True)):
            direction = first - weight * scores
            noise += mu[..., category] * direction**2
        total = _weighted(mu, both)
        found: Floats = np.divide(noise, total**2, out=np.zeros(noise.shape), where=total > 0)
        return found


def _weighted(mu: Floats, weight: Floats) -> Floats:
    """Σ_c w_c mu_c, category by category: they often lie apart in memory."""
    total = np.zeros(mu.shape[:-1])
    for category in np.flatnonzero(weight):
        total += mu[..., category] if weight[category] == 1.0 else weight[category] * mu[..., category]
    return total


@dataclass(frozen=True, slots=True)
class Covariates:
    """Distinct covariate rows.

    Parameters
    ----------
    x : (u, d) covariates, NaN where missing; d may be 0.
    margins : (u, K, K, q) judges' log p_left - log p_right of the ordered pair, antisymmetric in the two items, NaN
        where a judge is silent (0 is a judge's tie), single or double precision; None without judges.
    """

    x: Floats
    margins: Floats | NDArray[np.float32] | None = None

    def __len__(self) -> int:
        return int(self.x.shape[0])

    def take(self, index: Ints) -> Covariates:
        """The rows named by `index`, in its order."""
        return Covariates(self.x[index], None if self.margins is None else self.margins[index])

    def judged(self, pattern: Ints, left: Ints, right: Ints) -> Floats:
        """(m, q) margins of one ordered pair per named covariate row, NaN where silent; q = 0 without judges."""
        if self.margins is None:
            return np.zeros((pattern.size, 0))
        return self.margins[pattern, left, right].astype(np.float64)


@dataclass(frozen=True, slots=True)
class Votes:
    """Labels taken, one entry a vote (all arrays of length m).

    Parameters
    ----------
    row : the estimator's row, 0 .. n-1.
    left, right : the ordered pair shown, 0 .. K-1.
    outcome : the category, 0 .. C-1.
    weight : the vote's share within its row: 1 / (votes on this ordered pair in its offer) / (offers of the row).
    voter : label of the voter; a vote without one has a label of its own.
    propensity : P(this ordered pair labelled in its offer | x) as used, in (0, 1].
    """

    row: Ints
    left: Ints
    right: Ints
    outcome: Ints
    weight: Floats
    voter: Ints
    propensity: Floats

    def __len__(self) -> int:
        return int(self.row.size)

    def take(self, index: Ints | Bools) -> Votes:
        """The votes named by `index` (positions or a mask)."""
        return Votes(
            self.row[index],
            self.left[index],
            self.right[index],
            self.outcome[index],
            self.weight[index],
            self.voter[index],
            self.propensity[index],
        )


@dataclass(frozen=True, slots=True)
class Sample:
    """Everything an estimator reads but the nuisance models.

    Parameters
    ----------
    n_items : K.
    rule : the outcome weights.
    votes : the labels.
    context : (n,) cluster label of each row.
    fold : (n,) the fold whose models, fitted without it, score the row.
    pattern : (n,) index of the row's covariates among the u distinct ones.
    possible : (K, K) ordered pairs with a positive propensity where the whole policy is known, else None.
    """

    n_items: int
    rule: Rule
    votes: Votes
    context: Ints
    fold: Ints
    pattern: Ints
    possible: Bools | None = None

    @property
    def n_rows(self) -> int:
        return int(self.context.size)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Scores and the covariance of their estimator (already divided by n).

    Parameters
    ----------
    value : (d,) scores.
    covariance : (d, d) of the estimator.
    n_rows : rows behind it.
    """

    value: Floats
    covariance: Floats
    n_rows: int

    @property
    def standard_error(self) -> Floats:
        """(d,) square roots of the covariance's diagonal."""
        return np.sqrt(np.clip(np.diagonal(self.covariance), 0.0, None))


@dataclass(frozen=True, slots=True)
class Training:
    """What an outcome learner is fitted to (arrays over m votes; x over u distinct covariates).

    Parameters
    ----------
    x : the distinct covariates.
    pattern : (m,) each vote's covariates.
    left, right, outcome : (m,) the ordered pair and the category.
    weight : (m,) positive.
    group : (m,) votes of one group stay on one side of an inner split.
    n_items : K.
    rule : the outcome weights.
    """

    x: Covariates
    pattern: Ints
    left: Ints
    right: Ints
    outcome: Ints
    weight: Floats
    group: Ints
    n_items: int
    rule: Rule


class OutcomeModel(Protocol):
    """A fitted mu."""

    def probabilities(self, x: Covariates) -> Floats:
        """(u, K, K, C) category probabilities of every ordered pair; the diagonal carries no meaning."""

    def probabilities_at(self, x: Covariates, left: Ints, right: Ints) -> Floats:
        """(m, C) for one ordered pair per covariate row."""

    def to_bytes(self) -> bytes:
        """The model as bytes that the learners' loader reads back."""


class OutcomeLearner(Protocol):
    """Fits mu on the votes of the other folds."""

    def fit(self, training: Training, *, seed: int) -> OutcomeModel:
        """Fit; never fails for want of data: it shrinks to the prior instead."""

    def begin(self, training: Training, *, seed: int) -> OutcomeModel:
        """The first half of `fit`."""

    def finish(self, training: Training, begun: OutcomeModel, *, seed: int) -> OutcomeModel:
        """The second half: what `fit` would have returned, given what was begun with the same votes."""
