"""Lotteries without a regulariser: the maximal one of least norm, the robust one, the best within a budget."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from app.stats.errors import InvalidInput, NotConverged
from app.stats.games.interior_point import Problems
from app.stats.games.quadratic import Found, certificate
from app.stats.types import Bools, Floats

SINGULAR = 1e-9
"""Singular values below this share of the largest one are 0."""


def least_norm(problems: Problems, support: Bools) -> Found:
    """Shares of least norm among those with s = 0 on the support and z = 0 off it.

    As lambda falls to 0 the equilibria tend to the maximal lottery of least norm, and in the end keep one support
    (Tikhonov's path of a monotone linear problem); on it the limit is this.

    Parameters
    ----------
    problems : at lambda = 0.
    support : (n, V) of the solutions at a small lambda.
    """
    shares = problems.mass > 0
    z = np.zeros(support.shape)
    for at, kept in enumerate(support):
        z[at, kept] = _least_norm(problems.matrix[at], problems.offset[at], kept, shares)
    z = np.maximum(z, 0.0)
    z /= np.where(shares, (z @ problems.mass)[:, None], 1.0)
    return Found(z, certificate(problems, z))


def _least_norm(matrix: Floats, offset: Floats, kept: Bools, shares: Bools) -> Floats:
    size = int(kept.sum())
    mass = shares[kept].astype(np.float64)
    system = np.block([[matrix[np.ix_(kept, kept)], mass[:, None]], [mass, 0.0]])
    left, values, right = np.linalg.svd(system)
    rank = int((values > SINGULAR * values[0]).sum())
    aim = np.append(-offset[kept], 1.0)
    found = right[:rank].T @ ((left[:, :rank].T @ aim) / values[:rank])
    # What the equations leave open serves to shorten the shares; multipliers have no length.
    free, long = right[rank:].T, np.append(shares[kept], False)
    if free.size:
        found = found - free @ np.linalg.lstsq(free[long], found[long], rcond=SINGULAR)[0]
    shares_and_multipliers: Floats = found[:size]
    return shares_and_multipliers


def robust_lottery(lower: Floats) -> Floats:
    """argmax_pi min_j Σ_k pi_k L_kj: best against the worst payoffs that the intervals allow.

    Parameters
    ----------
    lower : (K, K) L, lower ends of the intervals of A_kj; the diagonal is 0.
    """
    return _best(-lower.T)[0]


def frontier(payoffs: Floats, prices: Floats, limits: Floats) -> Floats:
    """(B,) min over {pi: b'pi <= B} of max_j (A pi)_j, falling in B.

    Parameters
    ----------
    payoffs : (K, K) skew-symmetric.
    prices : (K,) b.
    limits : (B,) budgets.

    Raises
    ------
    InvalidInput : a budget below the lowest price.
    """
    if limits.size and limits.min() < prices.min():
        raise InvalidInput(f"a budget of {limits.min():g} is below the lowest price, {prices.min():g}")
    return np.array([_best(payoffs, prices, float(limit))[1] for limit in limits])


def programmed(payoffs: Floats) -> Floats:
    """(K,) a maximal lottery by linear programming (HiGHS), not the one of least norm where there are many."""
    return _best(payoffs)[0]


def _best(losses: Floats, prices: Floats | None = None, limit: float = 0.0) -> tuple[Floats, float]:
    """pi that minimises max_j (losses pi)_j, and that maximum."""
    size = losses.shape[1]
    rows = np.hstack([losses, -np.ones((len(losses), 1))])
    limits = np.zeros(len(losses))
    if prices is not None:
        rows, limits = np.vstack([rows, np.append(prices, 0.0)]), np.append(limits, limit)
    aim, mass = np.append(np.zeros(size), 1.0), np.append(np.ones(size), 0.0)[None]
    bounds = [(0.0, None)] * size + [(None, None)]
    found = linprog(aim, A_ub=rows, b_ub=limits, A_eq=mass, b_eq=[1.0], bounds=bounds, method="highs")
    if found.x is None:
        raise NotConverged(np.inf, 0.0)
    lottery = np.maximum(found.x[:size], 0.0)
    return lottery / lottery.sum(), float(found.x[size])
