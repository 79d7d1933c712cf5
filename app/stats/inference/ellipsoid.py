"""The chi-square ellipsoid: all scores at once, on the directions in which they vary."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc, chdtri

from app.stats.errors import InvalidInput
from app.stats.inference.gaussian import RANK_TOLERANCE
from app.stats.inference.scales import against
from app.stats.types import Estimate, Floats

# A deviation off the range of the covariance that is this share of the largest standard error is rounding.
OFF_RANGE = 1e-6
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """{theta : (theta - centre)ᵀ Sigma⁺ (theta - centre) <= radius, theta - centre in the range of Sigma}.

    Scores that obey a linear law, such as a sum of zero, vary in fewer directions than there are scores: the region
    lies in that plane and its degrees of freedom are the numerical rank of Sigma.

    Parameters
    ----------
    centre : (d,) the scores.
    axes : (d, r) orthonormal directions of the region.
    spread : (r,) variance along each of them.
    radius : the level's quantile of a chi-square with r degrees of freedom.
    """

    centre: Floats
    axes: Floats
    spread: Floats
    radius: float

    @property
    def degrees(self) -> int:
        """r, the numerical rank."""
        return int(self.spread.size)

    def statistic(self, theta: Floats) -> float:
        """(theta - centre)ᵀ Sigma⁺ (theta - centre), infinite where theta lies off the range.

        Parameters
        ----------
        theta : (d,) scores to compare with.
        """
        deviation = theta - self.centre
        along = deviation @ self.axes
        off = float(np.abs(deviation - self.axes @ along).max(initial=0.0))
        if off > OFF_RANGE * float(np.sqrt(self.spread.max(initial=0.0))) + ROUNDING:
            return float("inf")
        return float((along**2 / self.spread).sum())

    def holds(self, theta: Floats) -> bool:
        """Whether theta (d,) is in the region."""
        return self.statistic(theta) <= self.radius


def ellipsoid(estimate: Estimate, *, level: float = 0.95) -> Ellipsoid:
    """The joint confidence region of all scores (Wald).

    Parameters
    ----------
    estimate : d scores and their covariance, which may be singular.
    level : in (0, 1).

    Raises
    ------
    InvalidInput
        When the level is outside (0, 1).
    """
    if not 0.0 < level < 1.0:
        raise InvalidInput(f"level {level} outside (0, 1)")
    values, vectors = np.linalg.eigh(estimate.covariance)
    kept = values > RANK_TOLERANCE * max(float(values.max(initial=0.0)), 0.0)
    return Ellipsoid(estimate.value, vectors[:, kept], values[kept], radius(int(kept.sum()), level))


def radius(degrees: int, level: float) -> float:
    """The level's quantile of a chi-square; 0 without degrees of freedom. Its root is Scheffé's multiple.

    Every linear combination c of the scores lies within cᵀvalue ∓ sqrt(radius · cᵀ Sigma c), all of them at once
    (Scheffé 1953): these are the projections of the ellipsoid.
    """
    return float(chdtri(degrees, 1.0 - level)) if degrees else 0.0


@dataclass(frozen=True, slots=True)
class EqualityTest:
    """A test that all items have one score.

    Parameters
    ----------
    statistic : squared distance of the differences from zero, infinite where a difference is known without error.
    degrees : of freedom.
    p_value : chance of a larger statistic under equality; 1 where no difference varies or exists.
    """

    statistic: float
    degrees: int
    p_value: float


def equality_test(estimate: Estimate) -> EqualityTest:
    """Wald test of theta_1 = … = theta_d by the differences from the first item; which one is first is of no account.

    Parameters
    ----------
    estimate : d scores and their covariance.
    """
    if estimate.value.size < 2:
        return EqualityTest(0.0, 0, 1.0)
    contrasts = against(estimate, 0)
    differences = Estimate(contrasts.value[1:], contrasts.covariance[1:, 1:], estimate.n_rows)
    region = ellipsoid(differences)
    statistic = region.statistic(np.zeros(differences.value.size))
    p_value = float(chdtrc(region.degrees, statistic)) if region.degrees else float(statistic == 0.0)
    return EqualityTest(statistic, region.degrees, p_value)
