"""Equilibria of many games at once, each with its certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.games.entropic import entropic
from app.stats.games.game import Budget, Terms, checked
from app.stats.games.interior_point import Problems
from app.stats.games.lottery import least_norm
from app.stats.games.quadratic import Found, posed, solved
from app.stats.types import Bools, Floats

SMALL = (1e-5, 1e-4, 1e-6, 1e-7, 1e-3)
"""Strengths from which the maximal lottery's support is read, the next where one does not do."""
SHARP = 1e-5
"""Their tolerance, in squares of the strength: shares that vanish with it are told from slacks that do."""
EXACT = 1e-10
"""A maximal lottery's gap that needs no smaller strength."""


@dataclass(frozen=True, slots=True)
class Equilibria:
    """Solutions of n games.

    Parameters
    ----------
    lotteries : (n, K) shares >= 0 of sum 1.
    gap : (n,) certificate: no reply gains more than this.
    tolerance : what the gap was to be.
    """

    lotteries: Floats
    gap: Floats
    tolerance: float

    @property
    def converged(self) -> Bools:
        """(n,) whether the gap is within the tolerance."""
        reached: Bools = self.gap <= self.tolerance
        return reached


def equilibria(payoffs: Floats, terms: Terms) -> Equilibria:
    """The symmetric equilibrium of each game pi'A q - Omega(pi) + Omega(q) (NashEval, Definition 2).

    Parameters
    ----------
    payoffs : (n, K, K) skew-symmetric A.
    terms : Omega and the budget; strength 0 asks for the maximal lottery of least norm.

    Raises
    ------
    InvalidInput : payoffs, costs or prices that do not fit; a hard budget below the lowest price.
    """
    games = checked(payoffs, terms)
    tolerance = _tolerance(terms.strength)
    if not len(games):
        return Equilibria(np.zeros(games.shape[:2]), np.zeros(0), tolerance)
    if terms.regulariser == "kl":
        return Equilibria(*entropic(games, terms.strength, tolerance), tolerance)
    return _quadratic(games, terms, tolerance)


def _tolerance(strength: float) -> float:
    return max(1e-12, 1e-14 / strength) if strength else 1e-9


def _quadratic(games: Floats, terms: Terms, tolerance: float) -> Equilibria:
    size = games.shape[1]
    allowed, budget = _allowed(terms.budget, size)
    games = games[:, allowed][:, :, allowed]
    start = _start(budget, games.shape[1])
    if terms.strength == 0:
        found = _maximal(games, budget, start)
    else:
        found = solved(posed(games, terms.strength, budget), start, tolerance)
    lotteries = np.zeros((len(games), size))
    lotteries[:, allowed] = found.z[:, : games.shape[1]]
    return Equilibria(lotteries, found.gap, tolerance)


def _allowed(budget: Budget | None, size: int) -> tuple[Bools, Budget | None]:
    """Items that a lottery may hold, and what binds them: a limit at the lowest price leaves the cheapest alone."""
    everything = np.ones(size, dtype=np.bool_)
    if budget is None or budget.softness is not None:
        return everything, budget
    low, high = float(budget.prices.min()), float(budget.prices.max())
    if budget.limit >= high:
        return everything, None
    if budget.limit - low <= 1e-12 * max(high - low, 1e-300):
        return budget.prices <= low, None
    return everything, budget


def _start(budget: Budget | None, size: int) -> Floats:
    """(V,) a lottery with shares everywhere and something left of a hard budget; the multiplier starts at 1."""
    even = np.full(size, 1.0 / size)
    if budget is None:
        return even
    if budget.softness is not None:
        over = max(float(budget.prices @ even) - budget.limit, 0.0)
        return np.append(even, 1.0 + 2.0 * budget.softness * over)
    cheap = budget.prices == budget.prices.min()
    low, mean = float(budget.prices.min()), float(budget.prices.mean())
    share = min(0.5 * (budget.limit - low) / (mean - low), 1.0) if mean > low else 1.0
    return np.append(share * even + (1.0 - share) * cheap / cheap.sum(), 1.0)


def _maximal(games: Floats, budget: Budget | None, start: Floats) -> Found:
    """The best of the extrapolations from ever smaller strengths; the smaller ones only where they are needed."""
    limit = posed(games, 0.0, budget)
    best = Found(np.zeros((len(games), start.size)), np.full(len(games), np.inf))
    for strength in SMALL:
        open_ = np.flatnonzero(best.gap > EXACT)
        if not open_.size:
            break
        near = posed(games[open_], strength, budget)
        tried = _extrapolated(limit.take(open_), near, solved(near, start, SHARP * strength**2))
        at = open_[tried.gap < best.gap[open_]]
        better = tried.gap < best.gap[open_]
        best.z[at], best.gap[at] = tried.z[better], tried.gap[better]
    return best


def _extrapolated(limit: Problems, near: Problems, found: Found) -> Found:
    forces = near.forces(found.z)
    massive = near.mass > 0
    slack = np.where(massive, forces - forces[:, massive].min(axis=1, keepdims=True), forces)
    return least_norm(limit, found.z > slack)
