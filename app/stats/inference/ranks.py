"""Ranks and the ranks that the data leave open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.inference.bands import SEED, Family, IntervalKind, critical_value, radial_quantile
from app.stats.inference.gaussian import directions, factor
from app.stats.inference.scales import against
from app.stats.types import Bools, Estimate, Floats, Ints

# Smaller differences are rounding and order nothing.
TIE = 1e-9
# Where two columns cancel, rounding of the variances leaves about the root of the machine precision of the error.
ROUNDING = 1e-7
# Draws × pairs at most: about half a second at 200 items.
WORK = 2**28
MOST_DIRECTIONS = 2**14
BLOCK = 256


def ranks(value: Floats) -> Ints:
    """1 + the number of scores that are larger by more than 1e-9.

    Parameters
    ----------
    value : (d,) scores, larger is better.

    Returns
    -------
    (d,) ranks from 1; equal scores share one.
    """
    above: Ints = (value[None, :] - value[:, None] > TIE).sum(axis=1)
    return above + 1


def rank_intervals(
    estimate: Estimate, *, kind: IntervalKind = "simultaneous", level: float = 0.95
) -> tuple[Ints, Ints]:
    """Best and worst rank that the pairwise differences leave open to each item.

    [1 + #surely better, d - #surely worse]: with a simultaneous family all true ranks lie inside at once with the
    level (Mogstad, Romano, Shaikh and Wilhelm, "Inference for ranks", 2024).

    Parameters
    ----------
    estimate : d scores and their covariance.
    kind, level : of the intervals of the differences, as in `bands`.

    Returns
    -------
    best, worst : (d,) with 1 <= best <= rank <= worst <= d.
    """
    better = surely_better(estimate, kind=kind, level=level)
    return 1 + better.sum(axis=0), estimate.value.size - better.sum(axis=1)


@dataclass(frozen=True, slots=True)
class Differences:
    """All pairwise differences with intervals that are one multiple of their standard errors.

    Parameters
    ----------
    value : (d, d) value_j - value_k.
    error : (d, d) their standard errors, exactly 0 where these are rounding.
    critical : the multiple.
    """

    value: Floats
    error: Floats
    critical: float

    @property
    def reach(self) -> Floats:
        """(d, d) half the width of each interval."""
        return self.critical * self.error

    @property
    def better(self) -> Bools:
        """(d, d) whether the row's item is surely better than the column's.

        A difference known without error counts when it exceeds 1e-9.
        """
        better: Bools = self.value > np.maximum(self.reach, TIE)
        return better


def differences(estimate: Estimate, *, kind: IntervalKind = "simultaneous", level: float = 0.95) -> Differences:
    """Two-sided intervals of all d (d - 1) / 2 differences.

    Parameters
    ----------
    estimate : d scores and their covariance.
    kind, level : of the intervals, as in `bands`; the family is that of all differences. `anytime` shares the error
        out evenly over them, so that all hold at every look at a growing board.

    Raises
    ------
    InvalidInput
        When the level is outside (0, 1).
    """
    error = difference_errors(estimate)
    family = Family(
        members=int((error > 0).sum()) // 2,
        n_rows=estimate.n_rows,
        joint=lambda: difference_max_t(estimate, level),
        rank=lambda: factor(against(estimate, 0).covariance).shape[1],
    )
    value = estimate.value[:, None] - estimate.value[None, :]
    return Differences(value, error, critical_value(kind, level, family))


def surely_better(estimate: Estimate, *, kind: IntervalKind = "simultaneous", level: float = 0.95) -> Bools:
    """(d, d) which differences are positive beyond their intervals; see `differences`."""
    return differences(estimate, kind=kind, level=level).better


def open_neighbours(estimate: Estimate, *, kind: IntervalKind = "simultaneous", level: float = 0.95) -> Bools:
    """(d, d) items next to each other in the order of their scores whose difference could be zero, the upper one first.

    Parameters
    ----------
    estimate : d scores and their covariance.
    kind, level : of the intervals of the differences, as in `bands`.
    """
    order = np.argsort(-estimate.value, kind="stable")
    above, below = order[:-1], order[1:]
    found = np.zeros((order.size, order.size), dtype=np.bool_)
    found[above, below] = ~surely_better(estimate, kind=kind, level=level)[above, below]
    return found


def difference_errors(estimate: Estimate) -> Floats:
    """(d, d) standard errors of value_j - value_k; exactly 0 where they are rounding."""
    variance = np.diagonal(estimate.covariance)
    spread = variance[:, None] + variance[None, :] - 2.0 * estimate.covariance
    error = np.sqrt(np.maximum(spread, 0.0))
    return np.where(error > ROUNDING * np.sqrt(variance.max(initial=0.0)), error, 0.0)


def difference_max_t(estimate: Estimate, level: float) -> float:
    """The level-quantile of max_jk |Z_j - Z_k| / se_jk, Z ~ N(0, covariance); directions drawn as in `bands.max_t`."""
    error = difference_errors(estimate)
    inverse = np.divide(1.0, error, out=np.zeros(error.shape), where=error > 0)
    loadings = factor(estimate.covariance)
    items, rank = loadings.shape
    size = int(np.clip(WORK // items**2, 1024, MOST_DIRECTIONS))
    draws = directions(size, rank, seed=SEED) @ loadings.T
    reach = np.concatenate([_largest(draws[at : at + BLOCK], inverse) for at in range(0, size, BLOCK)])
    return radial_quantile(reach, rank, level)


def _largest(draws: Floats, inverse: Floats) -> Floats:
    """max over pairs of |draw_j - draw_k| inverse_jk: (draws,), a block that stays in the processor's cache."""
    rows = np.ascontiguousarray(draws.T)
    largest = np.zeros(rows.shape[1])
    for item in range(1, rows.shape[0]):
        gaps = np.abs(rows[:item] - rows[item])
        gaps *= inverse[:item, item, None]
        np.maximum(largest, gaps.max(axis=0), out=largest)
    return largest
