"""How likely a draw has been answered by now: what a logged propensity is worth while answers are still out.

A drawn pair without an answer is non-response. Its chance is that of draws of its age, by what has become of them until
now: answered or not. When the answers came is no part of it, so that answers in one go are as good as a steady flow,
where a curve of the time to the answer would take every draw for one that could be answered at any moment.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from app.stats.debias.weights import sums_by
from app.stats.errors import InvalidInput
from app.stats.types import Bools, Floats, Ints

CELL = 20
"""Answers in each class of ages: one answer never speaks for its neighbours alone."""
LEAST = 0.25
"""The youngest classes are one until so much of the overall rate has been answered in it; weights stay bounded so."""


@dataclass(frozen=True, slots=True)
class DrawnPairs:
    """Drawn ordered pairs (arrays of length d).

    Parameters
    ----------
    left, right : the ordered pair.
    age : seconds from the draw to now, at least 0.
    answered : whether there is an answer by now. A skip is none.

    Raises
    ------
    InvalidInput
        For lengths that differ and ages that are negative, or unknown.
    """

    left: Ints
    right: Ints
    age: Floats
    answered: Bools

    def __post_init__(self) -> None:
        if len({self.left.shape, self.right.shape, self.age.shape, self.answered.shape}) > 1:
            raise InvalidInput("draws need one pair, one age and one state each")
        if not np.isfinite(self.age).all() or not (self.age >= 0).all():
            raise InvalidInput("ages of draws are seconds, not negative")


@dataclass(frozen=True, slots=True)
class ResponseRates:
    """The chance that a draw of a certain age has been answered by now.

    A monotone regression of answered or not on the age, over all pairs: the older, the likelier. Ages are classes of
    `CELL` answers, the youngest of them pooled until their rate is `LEAST` of the overall one; classes as coarse as
    that leave scores unbiased as long as contexts of neighbouring ages are alike. Each class's answers divided by its
    rate add up to its draws. A pair's own rate is that of its ages times its answers over those expected of it, shrunk
    to 1 the more the less the pairs differ beyond chance.

    Parameters
    ----------
    ages : (t,) seconds, ascending, from which on draws are answered so often. No younger one has an answer; such draws
        say nothing yet, and an average over draws is one over the others.
    answered : (t,) chance of an answer by now, in (0, 1], never falling.
    pair : (K, K) each ordered pair's factor.
    """

    ages: Floats
    answered: Floats
    pair: Floats

    @classmethod
    def of(cls, draws: DrawnPairs, n_items: int) -> ResponseRates:
        """Rates of a board's draws; without any, every draw counts as answered."""
        if not draws.left.size:
            return cls(np.zeros(1), np.ones(1), np.ones((n_items, n_items)))
        ages, answered = _by_age(draws.age, draws.answered)
        expected = _curve(ages, answered, draws.age)
        cell, shape = draws.left * n_items + draws.right, (n_items, n_items)
        sums = (
            sums_by(cell, each, n_items**2)
            for each in (draws.answered.astype(np.float64), expected, expected * (1.0 - expected))
        )
        return cls(ages, answered, _factors(*sums).reshape(shape))

    def rate(self, left: Ints, right: Ints, age: Floats) -> Floats:
        """(m,) chance in [0, 1] that a draw of the pair made `age` seconds ago has been answered by now.

        Parameters
        ----------
        left, right : (m,) ordered pairs.
        age : (m,) seconds since the draw. Beyond the oldest draw the curve stays level.
        """
        return np.minimum(_curve(self.ages, self.answered, age) * self.pair[left, right], 1.0)

    def oldest(self, left: Ints, right: Ints) -> Floats:
        """(m,) chance in (0, 1] of draws of the pair as old as any; of pairs alone where no draw was answered.

        Never more than 1 of a pair that is answered more often than others: what they differ by is kept.

        Parameters
        ----------
        left, right : (m,) ordered pairs.
        """
        level = float(self.answered.max(initial=0.0)) or 1.0
        return np.minimum(level * self.pair[left, right], 1.0)

    def too_young(self, age: Floats) -> Bools:
        """(m,) ages at which no draw has been answered; without any answer, all of them."""
        young: Bools = age < self.ages.min(initial=np.inf)
        return young


def _by_age(age: Floats, answered: Bools) -> tuple[Floats, Floats]:
    """Ages at which classes begin, and their rates; the draws younger than the first answer are of none."""
    ages, at = np.unique(age, return_inverse=True)
    draws, answers = sums_by(at, np.ones(age.size), ages.size), sums_by(at, answered.astype(np.float64), ages.size)
    so_far = np.cumsum(answers)
    heard = so_far > 0
    last = max(int(answers.sum()) // CELL - 1, 0)
    label = np.minimum((so_far - answers) // CELL, last)[heard]
    first = np.flatnonzero(np.diff(label, prepend=-1))
    if not first.size:
        return ages[:0], draws[:0]
    return _monotone(ages[heard][first], np.add.reduceat(draws[heard], first), np.add.reduceat(answers[heard], first))


def _monotone(ages: Floats, draws: Floats, answers: Floats) -> tuple[Floats, Floats]:
    """The same of classes (t,) that are pooled at the young end, and never fall."""
    so_far = np.cumsum(answers) / np.cumsum(draws)
    young = int(np.argmax(so_far >= LEAST * so_far[-1]))
    first = np.concatenate([[0], np.arange(young + 1, ages.size)])
    draws, answers = np.add.reduceat(draws, first), np.add.reduceat(answers, first)
    return ages[first], isotonic_regression(answers / draws, weights=draws).x


def _curve(times: Floats, answered: Floats, age: Floats) -> Floats:
    """The step function through (times, answered), 0 before the first."""
    steps: Floats = np.concatenate([[0.0], answered])
    return steps[np.searchsorted(times, age, side="right")]


def _factors(heard: Floats, expected: Floats, variance: Floats) -> Floats:
    """(answers + 1/τ²) / (expected + 1/τ²) with τ² the variance of the pairs' factors, by moments."""
    excess = float(((heard - expected) ** 2 - variance).sum())
    prior = float((expected**2).sum()) / max(excess, 1e-9)
    factors: Floats = np.divide(heard + prior, expected + prior, out=np.ones_like(heard), where=expected + prior > 0)
    return factors
