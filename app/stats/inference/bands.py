"""Intervals for the scores of an estimate, from its covariance alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, assert_never

import numpy as np
from scipy.optimize import brentq
from scipy.special import chdtrc, ndtri

from app.stats.errors import InvalidInput
from app.stats.inference.ellipsoid import radius
from app.stats.inference.gaussian import directions, factor
from app.stats.types import Bools, Estimate, Floats

IntervalKind = Literal["simultaneous", "marginal", "bonferroni", "sidak", "ellipsoid", "anytime"]
DIRECTIONS = 2**14
# It makes the multiple smallest at about 4,000 rows (level .95): 1.6 times a fixed interval's at 1,000, 1.55 there.
ANYTIME_RHO = 0.05
SEED = 20260121
# A standard error below this share of the largest one is 0: a coordinate held fixed.
FIXED = 1e-9


@dataclass(frozen=True, slots=True)
class Bands:
    """Interval ends.

    Parameters
    ----------
    lower, upper : (d,) value ∓ critical × standard error; both the value itself where that error is 0.
    critical : the multiple of the standard error.
    """

    lower: Floats
    upper: Floats
    critical: float


def bands(estimate: Estimate, *, kind: IntervalKind = "simultaneous", level: float = 0.95) -> Bands:
    """Two-sided intervals of every score.

    Parameters
    ----------
    estimate : d scores and their covariance.
    kind : `marginal` covers each score with the level; `simultaneous` (max-t), `bonferroni` and `sidak` cover all
        scores at once, `ellipsoid` (Scheffé) all linear combinations of the scores, `anytime` all scores at every
        look at a growing board.
    level : in (0, 1).

    Returns
    -------
    Bands with lower <= value <= upper.

    Raises
    ------
    InvalidInput
        When the level is outside (0, 1).
    """
    moving = moves(estimate.standard_error)
    block = estimate.covariance[np.ix_(moving, moving)]
    error = np.where(moving, estimate.standard_error, 0.0)
    family = Family(
        int(moving.sum()), estimate.n_rows, joint=lambda: max_t(block, level), rank=lambda: factor(block).shape[1]
    )
    critical = critical_value(kind, level, family)
    return Bands(estimate.value - critical * error, estimate.value + critical * error, critical)


def moves(error: Floats) -> Bools:
    """Which standard errors are more than rounding."""
    moving: Bools = error > FIXED * error.max(initial=0.0)
    return moving


@dataclass(frozen=True, slots=True)
class Family:
    """Statements made at once.

    Parameters
    ----------
    members : how many.
    n_rows : rows behind the estimate; only `anytime` intervals depend on them.
    joint : computes the max-t value of the family; called for `simultaneous` intervals only.
    rank : computes the numerical rank of the scores' covariance; called for `ellipsoid` intervals only.
    """

    members: int
    n_rows: int
    joint: Callable[[], float]
    rank: Callable[[], int]


def critical_value(kind: IntervalKind, level: float, family: Family) -> float:
    """How many standard errors an interval of this kind reaches to either side.

    Parameters
    ----------
    kind : the kind of interval.
    level : in (0, 1).
    family : the statements that are made at once.
    """
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"level {level} outside (0, 1)")
    members = max(family.members, 1)
    match kind:
        case "simultaneous":
            return family.joint() if members > 1 else _two_sided(1.0 - level)
        case "bonferroni":
            return _two_sided((1.0 - level) / members)
        case "sidak":
            return sidak(members, level)
        case "marginal":
            return _two_sided(1.0 - level)
        case "ellipsoid":
            return float(np.sqrt(radius(family.rank(), level)))
        case "anytime":
            return anytime((1.0 - level) / members, family.n_rows)
        case _:
            assert_never(kind)


def sidak(members: int, level: float) -> float:
    """How many standard errors cover Gaussian scores at once, whatever their correlation (Šidák, 1967)."""
    return _two_sided(float(-np.expm1(np.log(level) / max(members, 1))))


def _two_sided(error: float) -> float:
    return float(-ndtri(error / 2))


def anytime(error: float, n_rows: int) -> float:
    """The multiple of the standard error at which a mean may be watched as rows come in.

    sqrt(2 (n ρ² + 1) / (n ρ²) log(sqrt(n ρ² + 1) / α)) with ρ = .05: the asymptotic confidence sequence of
    Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (arXiv 2103.06476, Theorem 2.2).

    Parameters
    ----------
    error : α, the chance of ever missing, in (0, 1).
    n_rows : n so far, at least 1.
    """
    scaled = n_rows * ANYTIME_RHO**2
    return float(np.sqrt(2.0 * (scaled + 1.0) / scaled * np.log(np.sqrt(scaled + 1.0) / error)))


def max_t(covariance: Floats, level: float) -> float:
    """The level-quantile of max_j |Z_j| / sd_j, Z ~ N(0, covariance) (DMLRank, Section 5, simultaneous bands).

    Z = R L U with U uniform on the sphere and R² chi-square with the rank of the covariance as degrees of freedom:
    only the direction is drawn (from a fixed seed), the radius is integrated exactly.

    Parameters
    ----------
    covariance : (d, d), positive diagonal; may be singular.
    level : in (0, 1).
    """
    deviation = np.sqrt(covariance.diagonal())
    loadings = factor(covariance / np.outer(deviation, deviation))
    rank = loadings.shape[1]
    reach = np.abs(directions(DIRECTIONS, rank, seed=SEED) @ loadings.T).max(axis=1)
    return radial_quantile(reach, rank, level)


def radial_quantile(reach: Floats, rank: int, level: float) -> float:
    """c with mean over directions of P(chi_rank · reach <= c) = level.

    Parameters
    ----------
    reach : (draws,) largest standardised coordinate along each direction, in (0, 1].
    rank : degrees of freedom, at least 1.
    level : in (0, 1).
    """
    inverse = 1.0 / np.maximum(reach, np.finfo(np.float64).tiny ** 0.25)

    def excess(critical: float) -> float:
        return float(chdtrc(rank, (critical * inverse) ** 2).mean()) - (1.0 - level)

    # No direction reaches beyond 1, so P(chi_rank > high) = 1 - level is never exceeded there.
    high = 1.0
    while excess(high) > 0.0:
        high *= 2.0
    return float(brentq(excess, 0.0, high, xtol=1e-7))
