"""Ridge regression of a log-concave likelihood, the ridge's strengths chosen by empirical Bayes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.optimize import minimize

from app.stats.types import Floats, Ints

_SWEEPS = 6
_SETTLED = 0.1
_STOP: Any = {"maxiter": 500, "ftol": 1e-12, "gtol": 1e-4}


class Likelihood(Protocol):
    """A negative log-likelihood of flat parameters."""

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """The value and its gradient."""

    def curvature(self, w: Floats) -> Floats:
        """The diagonal of the Hessian."""


@dataclass(frozen=True, slots=True)
class Family:
    """Parameters that share a prior N(0, variance), row by row, the rows' variances drawn to a common one.

    Parameters
    ----------
    index : (rows, members) positions in the flat parameters.
    guess : the variance believed before any vote.
    cap : the largest variance allowed; separated data would send it to infinity.
    strength : how many parameters the belief, and the common variance within a row, count for.
    """

    index: Ints
    guess: float
    cap: float
    strength: float = 2.0

    def precision(self, w: Floats, determined: Floats) -> Floats:
        """(rows, 1) inverse variances by MacKay's fixed point.

        variance = (Σ w² + strength · prior) / (γ + strength), γ = Σ H / (H + precision) the number of parameters
        that the votes determine (MacKay 1992, Bayesian interpolation, eq. 4.8).

        Parameters
        ----------
        w : flat parameters.
        determined : H / (H + precision) of each of them.
        """
        squares = (w[self.index] ** 2).sum(axis=1)
        gamma = determined[self.index].sum(axis=1)
        common = (squares.sum() + self.strength * self.guess) / (gamma.sum() + self.strength)
        variance = (squares + self.strength * common) / (gamma + self.strength)
        precision: Floats = 1 / np.minimum(variance, self.cap)[:, None]
        return precision


@dataclass(frozen=True, slots=True)
class Fit:
    """Parameters of largest posterior density and the precision of the prior they were found under."""

    w: Floats
    precision: Floats


def climb(likelihood: Likelihood, start: Fit) -> Fit:
    """The posterior mode under a fixed precision.

    L-BFGS on parameters scaled by their posterior standard deviations.

    Parameters
    ----------
    likelihood : the negative log-likelihood.
    start : where to start, and the precision.
    """
    precision = start.precision
    scale = 1 / np.sqrt(likelihood.curvature(start.w) + precision)

    def objective(v: Floats) -> tuple[float, Floats]:
        w = v * scale
        value, gradient = likelihood.value_and_gradient(w)
        return value + 0.5 * float(precision @ w**2), (gradient + precision * w) * scale

    found = minimize(objective, start.w / scale, (), "L-BFGS-B", jac=True, options=_STOP)
    return Fit(found.x * scale, precision)


def fit_ridge(likelihood: Likelihood, start: Fit, families: Sequence[Family]) -> Fit:
    """Alternate the mode and the families' variances until these settle.

    Parameters
    ----------
    likelihood : the negative log-likelihood.
    start : first parameters and precisions; parameters outside every family keep theirs.
    families : the priors to be learnt.
    """
    found = climb(likelihood, start)
    for _ in range(_SWEEPS):
        precision = found.precision.copy()
        curvature = likelihood.curvature(found.w)
        determined = curvature / (curvature + precision)
        for family in families:
            precision[family.index] = family.precision(found.w, determined)
        change = np.abs(np.log(precision / found.precision)).max(initial=0.0)
        found = climb(likelihood, Fit(found.w, precision))
        if change < _SETTLED:
            break
    return found
