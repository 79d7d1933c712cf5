"""Equilibria under lambda/2 |pi|^2, with or without a budget: interior point, then the exact solve on the support."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.games.game import Budget
from app.stats.games.interior_point import Points, Problems, bordered, follow
from app.stats.types import Bools, Floats


@dataclass(frozen=True, slots=True)
class Found:
    """Solutions.

    Parameters
    ----------
    z : (n, V) shares, and the budget's multiplier where there is one.
    gap : (n,) z's with the least s at 0: at least the gap of the game.
    """

    z: Floats
    gap: Floats


def posed(payoffs: Floats, strength: float, budget: Budget | None) -> Problems:
    """lambda pi - A pi + m b + nu 1 = s; with a budget also m / rho - b'pi + B = w, m * w = 0.

    The soft budget's derivative is rho (b'pi - B)_+ b = m b; a hard one is rho without bound. Both keep the matrix
    positive semidefinite.

    Parameters
    ----------
    payoffs : (n, K, K).
    strength : lambda > 0.
    budget : or None.
    """
    size = payoffs.shape[1]
    wide = size + (budget is not None)
    matrix = np.zeros((len(payoffs), wide, wide))
    matrix[:, :size, :size] = strength * np.eye(size) - payoffs
    offset, mass = np.zeros((len(payoffs), wide)), np.ones(wide)
    if budget is not None:
        matrix[:, :size, size], matrix[:, size, :size] = budget.prices, -budget.prices
        matrix[:, size, size] = 0.0 if budget.softness is None else 1.0 / budget.softness
        offset[:, size], mass[size] = budget.limit, 0.0
    return Problems(matrix, offset, mass)


def solved(problems: Problems, start: Floats, tolerance: float) -> Found:
    """Solutions to at least `tolerance` where the arithmetic allows.

    Parameters
    ----------
    problems : as `posed`.
    start : (V,) z > 0 of mass 1 within the budget.
    tolerance : of the gap.
    """
    z = np.tile(start, (len(problems), 1))
    reached = follow(problems, Points(z, _opening(problems, z)), tolerance)
    rough = Found(reached.z, certificate(problems, reached.z))
    slack = problems.forces(reached.z) + reached.nu[:, None] * problems.mass
    exact = polished(problems, reached.z > slack)
    better = exact.gap < rough.gap
    return Found(np.where(better[:, None], exact.z, rough.z), np.where(better, exact.gap, rough.gap))


def _opening(problems: Problems, z: Floats) -> Floats:
    """(n,) nu that makes every s positive, the least about as large as they differ."""
    forces = problems.forces(z)
    massive = problems.mass > 0
    low, high = forces[:, massive].min(axis=1), forces[:, massive].max(axis=1)
    nu: Floats = 0.3 * (high - low) + 0.01 - low
    return nu


def polished(problems: Problems, support: Bools) -> Found:
    """The solve with s = 0 on the support and z = 0 off it, negative shares cut off.

    Parameters
    ----------
    problems : the problems.
    support : (n, V).
    """
    found = np.empty(support.shape)
    for part in problems.parts():
        found[part] = _on_support(problems.take(part), support[part])
    z = np.maximum(found, 0.0)
    total = z @ problems.mass
    usable = np.isfinite(total) & (total > 0)
    z = np.where(usable[:, None], np.where(problems.mass > 0, z / np.where(usable, total, 1.0)[:, None], z), 0.0)
    return Found(z, np.where(usable, certificate(problems, z), np.inf))


def _on_support(problems: Problems, support: Bools) -> Floats:
    system = bordered(problems)
    system[:, :-1][~support] = 0.0
    place = np.arange(problems.mass.size)
    system[:, place, place] += ~support
    right = np.concatenate([np.where(support, -problems.offset, 0.0), np.ones((len(problems), 1))], axis=1)
    return _each(system, right)[:, :-1]


def _each(system: Floats, right: Floats) -> Floats:
    """The solutions; NaN where a system is singular, without harm to the others."""
    try:
        return np.asarray(np.linalg.solve(system, right[..., None])[..., 0], dtype=np.float64)
    except np.linalg.LinAlgError:
        half = len(system) // 2
        if not half:
            return np.full(right.shape, np.nan)
        return np.concatenate([_each(system[:half], right[:half]), _each(system[half:], right[half:])])


def certificate(problems: Problems, z: Floats) -> Floats:
    """(n,) max over lotteries q of (q - pi)'(A pi - Omega'(pi)), the linearised gap; infinite where a limit is broken.

    Omega is convex, so this is at least the gap.

    Parameters
    ----------
    problems : the problems.
    z : (n, V) non-negative, shares of sum 1.
    """
    forces = problems.forces(z)
    massive = problems.mass > 0
    low = forces[:, massive].min(axis=1, keepdims=True)
    slack = np.where(massive, forces - low, forces)
    # Rounding of b'pi - B is not a broken limit.
    broken = (slack < -1e-12 * (1.0 + np.abs(problems.offset))).any(axis=1)
    total: Floats = (z * np.maximum(slack, 0.0)).sum(axis=1)
    return np.where(broken, np.inf, total)
