"""How likely a draw has been answered by now: what a logged propensity is worth while answers are still out.

A drawn pair without an answer is non-response. The share answered among draws that are answered or expired is biased
while leases are open, since a young draw can only be in it by its answer; time to the answer is estimated instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.debias.weights import sums_by
from app.stats.errors import InvalidInput
from app.stats.types import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class DrawTimes:
    """Drawn ordered pairs, answered or not (arrays of length d).

    Parameters
    ----------
    left, right : the ordered pair.
    drawn_for : seconds from the draw to now, at least 0.
    answered_after : seconds from the draw to its first answer, through all its leases; infinite where there is none.
        A skip is no answer: the draw stays, unanswered, until now.

    Raises
    ------
    InvalidInput
        For lengths that differ and times that are negative, or unknown.
    """

    left: Ints
    right: Ints
    drawn_for: Floats
    answered_after: Floats

    def __post_init__(self) -> None:
        if len({self.left.shape, self.right.shape, self.drawn_for.shape, self.answered_after.shape}) > 1:
            raise InvalidInput("draws need one pair and one time each")
        if not np.isfinite(self.drawn_for).all() or not (np.minimum(self.drawn_for, self.answered_after) >= 0).all():
            raise InvalidInput("times of draws and answers are seconds from the draw on")


@dataclass(frozen=True, slots=True)
class ResponseRates:
    """The chance that a draw has been answered by a certain age.

    The answers' time is estimated by Kaplan and Meier (1958) over all pairs, each draw censored at its own age now;
    as draws never answered stay at risk, the curve ends at the share that is ever answered. A pair's own rate is that
    curve times its answers over those expected of it, shrunk to 1 the more the less the pairs differ beyond chance.

    Parameters
    ----------
    times : (t,) seconds, ascending, at which draws were answered.
    answered : (t,) chance of an answer by then, in (0, 1].
    pair : (K, K) each ordered pair's factor.
    """

    times: Floats
    answered: Floats
    pair: Floats

    @classmethod
    def of(cls, draws: DrawTimes, n_items: int) -> ResponseRates:
        """Rates of a board's draws; without any, every draw counts as answered."""
        if not draws.left.size:
            return cls(np.zeros(1), np.ones(1), np.ones((n_items, n_items)))
        heard = draws.answered_after <= draws.drawn_for
        times, answered = _kaplan_meier(np.minimum(draws.drawn_for, draws.answered_after), heard)
        expected = _curve(times, answered, draws.drawn_for)
        cell, shape = draws.left * n_items + draws.right, (n_items, n_items)
        sums = (
            sums_by(cell, each, n_items**2)
            for each in (heard.astype(np.float64), expected, expected * (1.0 - expected))
        )
        return cls(times, answered, _factors(*sums).reshape(shape))

    def rate(self, left: Ints, right: Ints, age: Floats) -> Floats:
        """(m,) chance in [0, 1] that a draw of the pair made `age` seconds ago has been answered by now.

        Parameters
        ----------
        left, right : (m,) ordered pairs.
        age : (m,) seconds since the draw, whenever its answer came. Beyond the oldest draw the curve stays level.
        """
        return np.minimum(_curve(self.times, self.answered, age) * self.pair[left, right], 1.0)


def _kaplan_meier(seen: Floats, heard: Bools) -> tuple[Floats, Floats]:
    """1 - Π (1 - answers / draws at risk) after each time of an answer."""
    times, answers = np.unique(seen[heard], return_counts=True)
    at_risk = seen.size - np.searchsorted(np.sort(seen), times, side="left")
    unanswered: Floats = np.cumprod(1.0 - answers / at_risk, dtype=np.float64)
    return times, 1.0 - unanswered


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
