"""Voters who stand out: who vote against what the model expects of anybody, or for one side of the screen.

Honest voters differ in taste. So the yardstick is not chance alone: how far voters in general lie from the model is
estimated by a median, which a minority of dishonest ones hardly moves, and only who lies far beyond that stands out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtr

from app.stats.debias.weights import sums_by
from app.stats.types import Bools, Floats, Ints, Rule, Votes

FEWEST_VOTES = 20
FALSE_DISCOVERIES = 0.05
MEDIAN_SQUARE = 0.4549364231195724
"""Median of a chi-square variable with one degree of freedom."""
EFFICIENCY = 0.37
"""Degrees of freedom that one voter adds to a variance taken from a median, where the mean square would take 1."""


@dataclass(frozen=True, slots=True)
class Lean:
    """One statistic of each judged voter (arrays of length v).

    Parameters
    ----------
    value : the statistic over its largest scale: a slope for agreement, a mean shift for sides.
    z : statistic / standard error, taste included.
    p_value : of z by Student's t: the median that taste is taken from is uncertain too.
    taste : standard deviation of `value` among voters beyond chance.
    """

    value: Floats
    z: Floats
    p_value: Floats
    taste: float


@dataclass(frozen=True, slots=True)
class Voters:
    """The voters with at least 20 votes.

    Parameters
    ----------
    voter, votes : (v,) labels and numbers of votes.
    agreement : 1 for one who follows the model as the votes on the whole do, 0 for one who votes at random, -1 for one
        who votes the wrong way round; tested from below.
    side : share of votes for the left less share for the right, beyond what the model expects; tested both ways.
    p_value : (v,) twice the smaller of both, at most 1.
    flagged : (v,) discoveries by Benjamini and Hochberg (1995) at 5%.
    """

    voter: Ints
    votes: Ints
    agreement: Lean
    side: Lean
    p_value: Floats
    flagged: Bools


def judge_voters(votes: Votes, chances: Floats, rule: Rule) -> Voters | None:
    """Compare every voter of enough votes with predictions made out of fold.

    With y = credit of the left item less that of the right one and e = E y, agreement is Σ e (y - e) / Σ e² + 1 and the
    side shift is Σ (y - e) / m.

    Parameters
    ----------
    votes : all counted ones; an anonymous vote has a label of its own.
    chances : (m, C) of each vote's outcomes, from models fitted without it.
    rule : of the board.

    Returns
    -------
    None where nobody has 20 votes.
    """
    count = np.bincount(votes.voter)
    voter = np.flatnonzero(count >= FEWEST_VOTES)
    if not voter.size:
        return None
    lean = np.sign(rule.first - rule.second)
    expected = chances @ lean
    surprise = lean[votes.outcome] - expected
    spread = chances @ lean**2 - expected**2
    slope = _lean(votes.voter, voter, (expected, surprise, spread), below=True)
    shift = _lean(votes.voter, voter, (np.ones_like(expected), surprise, spread), below=False)
    agreement = Lean(slope.value + 1.0, slope.z, slope.p_value, slope.taste)
    p_value = np.minimum(2.0 * np.minimum(agreement.p_value, shift.p_value), 1.0)
    return Voters(voter, count[voter], agreement, shift, p_value, discoveries(p_value, FALSE_DISCOVERIES))


def discoveries(p_value: Floats, level: float) -> Bools:
    """Benjamini and Hochberg's step-up rule: the expected share of false ones among them is at most the level.

    Parameters
    ----------
    p_value : (v,).
    level : in (0, 1).
    """
    order = np.sort(p_value)
    below = np.flatnonzero(order <= level * np.arange(1, order.size + 1) / order.size)
    found: Bools = p_value <= (order[below[-1]] if below.size else -1.0)
    return found


def taste_variance(statistic: Floats, noise: Floats, scale: Floats) -> float:
    """τ² with median of statistic² / (noise + τ² scale²) equal to that of a squared standard normal; 0 where below.

    Parameters
    ----------
    statistic, noise, scale : (v,) the statistics, their variances by chance, and what a unit of taste adds to them.
    """

    def excess(variance: float) -> float:
        return float(np.median(statistic**2 / (noise + variance * scale**2))) - MEDIAN_SQUARE

    if excess(0.0) <= 0.0:
        return 0.0
    high = float(np.max(statistic**2 / scale**2)) / MEDIAN_SQUARE
    return float(brentq(excess, 0.0, high, rtol=1e-6))


def _lean(label: Ints, voter: Ints, of_vote: tuple[Floats, Floats, Floats], *, below: bool) -> Lean:
    """Σ direction · surprise of each voter against its spread: two-sided, or from below.

    From below, taste is taken from the lower half of the voters: nobody can agree much more than the median voter does,
    but many agree less.
    """
    direction, surprise, spread = of_vote
    size = int(label.max()) + 1
    statistic = sums_by(label, direction * surprise, size)[voter]
    noise = np.maximum(sums_by(label, direction**2 * spread, size)[voter], 1e-12)
    scale = np.maximum(sums_by(label, direction**2, size)[voter], 1e-12)
    # Where tastes differ, a model of the average voter errs for everybody alike: the median voter is the yardstick.
    # Differences of ratios are exactly 0 there, so that nobody is above a median of his own.
    value = statistic / scale
    off = (value - np.median(value)) * scale
    asked = off <= 0.0 if below else np.ones(off.size, dtype=np.bool_)
    taste = taste_variance(off[asked], noise[asked], scale[asked])
    z = off / np.sqrt(noise + taste * scale**2)
    chance = np.asarray(stdtr(EFFICIENCY * asked.sum(), z if below else -np.abs(z)), dtype=np.float64)
    return Lean(value, z, chance if below else 2.0 * chance, float(np.sqrt(taste)))
