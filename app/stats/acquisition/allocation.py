"""How a labelling budget is spread over ordered pairs: the propensities that minimise Σ a/pi at a given cost.

Every rule below is written for "heights" h = √a (or a tempered power of it), one for each ordered pair and context, 0
on pairs that cannot be drawn. Contexts are rows; pairs are flattened to columns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from app.stats.errors import NotConverged
from app.stats.types import Floats

Mode = Literal["bernoulli", "single", "one"]

ROUNDS = 100
TOLERANCE = 1e-12
# log λ is searched within this factor of the λ at which the unconstrained allocation spends the budget.
REACH = 60.0


@dataclass(frozen=True, slots=True)
class Terms:
    """What every allocation of a board keeps to (r ordered pairs).

    Parameters
    ----------
    cost : (r,) non-negative labelling cost of each pair.
    floor : α, the least propensity of a pair that can be drawn.
    """

    cost: Floats
    floor: float

    @property
    def equal(self) -> bool:
        """Whether all pairs cost the same."""
        return bool(np.ptp(self.cost) == 0.0) if self.cost.size else True


def bernoulli(height: Floats, terms: Terms, scale: float) -> Floats:
    """pi = clip(h scale / √c, α, 1), scale = 1/√λ (DMLRank, arXiv 2601.21816, Theorem on A-optimal policies).

    Parameters
    ----------
    height : (u, r) h; a pair without height keeps the floor.
    terms : costs and floor.
    scale : 1/√λ; inf where labels are free.

    Returns
    -------
    (u, r) in [α, 1].
    """
    if np.isinf(scale):
        return np.ones(height.shape)
    return np.clip(_steep(height, terms.cost) * scale, terms.floor, 1.0)


def bernoulli_scale(height: Floats, terms: Terms, budget: float) -> float:
    """The scale at which the mean over contexts of Σ c pi is the budget.

    The cost is piecewise linear in the scale, so that Newton's steps, kept inside a bracket, end on it exactly.

    Parameters
    ----------
    height : (u, r).
    terms : costs and floor, with α Σ c <= budget <= Σ c.
    budget : expected cost of a context.
    """
    steep = _steep(height, terms.cost)
    free = steep * terms.cost

    def spent(scale: float) -> tuple[float, float]:
        raised = steep * scale
        cost = np.clip(raised, terms.floor, 1.0) @ terms.cost
        moving = (raised > terms.floor) & (raised < 1.0)
        return float(cost.mean()), float(np.where(moving, free, 0.0).sum() / len(height))

    return _scale_of(spent, budget, start=budget / max(float(free.sum() / len(height)), 1e-300))


def fill(height: Floats, floor: float) -> Floats:
    """T (u,) with Σ max(T h, α) = 1 for every context.

    The sum is convex and grows with T, so Newton's steps from 1/Σh, where it is at least 1, fall onto the root.

    Parameters
    ----------
    height : (u, r) with a positive entry in every row.
    floor : α <= 1/r.
    """
    level: Floats = 1.0 / height.sum(axis=1)
    for _ in range(ROUNDS):
        raised = level[:, None] * height
        above = raised > floor
        excess = np.where(above, raised, floor).sum(axis=1) - 1.0
        slope = np.where(above, height, 0.0).sum(axis=1)
        if (excess <= TOLERANCE).all():
            return level
        level = level - np.divide(excess, slope, out=np.zeros_like(excess), where=(excess > TOLERANCE) & (slope > 0))
    raise NotConverged(float(excess.max()), TOLERANCE)


def single(height: Floats, terms: Terms, scale: float) -> Floats:
    """At most one pair a context: minimise Σ h²/pi + λ c pi subject to Σ pi <= 1, pi >= α; scale = 1/√λ.

    With ν the price of the context, pi = clip(h / √(λ c + ν), α, 1). Where all pairs cost the same that is
    max(α, min(t, T) h), t = scale/√c. An infinite scale (λ = 0) makes it exactly one pair.

    Parameters
    ----------
    height : (u, r) with a positive entry in every row.
    terms : costs and floor, α <= 1/r.
    scale : 1/√λ, inf for λ = 0.

    Returns
    -------
    (u, r) with rows that sum to at most 1.
    """
    if terms.equal or np.isinf(scale):
        most = fill(height, terms.floor)
        price = np.sqrt(terms.cost[0]) if terms.cost.size else 0.0
        level = most if np.isinf(scale) or price == 0.0 else np.minimum(scale / price, most)
        filled: Floats = np.maximum(level[:, None] * height, terms.floor)
        return filled
    return _priced(height, terms, scale**-2.0)


def single_scale(height: Floats, terms: Terms, budget: float) -> float:
    """The scale at which `single` spends the budget; inf where it does not bind."""
    filled = single(height, terms, np.inf)
    if float((filled @ terms.cost).mean()) <= budget:
        return np.inf
    if terms.equal:
        return _equal_scale(height, terms, budget)
    return _unequal_scale(height, terms, budget)


def _equal_scale(height: Floats, terms: Terms, budget: float) -> float:
    most, price = fill(height, terms.floor), float(np.sqrt(terms.cost[0]))

    def spent(level: float) -> tuple[float, float]:
        raised = np.minimum(level, most)[:, None] * height
        above = (raised > terms.floor) & (level < most)[:, None]
        cost = price**2 * np.maximum(raised, terms.floor).sum(axis=1).mean()
        return float(cost), float(price**2 * np.where(above, height, 0.0).sum() / len(height))

    return price * _scale_of(spent, budget, start=float(most.min()))


def _unequal_scale(height: Floats, terms: Terms, budget: float) -> float:
    free = np.sqrt(terms.cost) * height
    centre = 2.0 * float(np.log(free.sum(axis=1).mean() / budget))
    price = np.zeros(len(height))

    def excess(log_price: float) -> float:
        nonlocal price
        pi, price = _with_price(height, terms, float(np.exp(log_price)), start=price)
        return float((pi @ terms.cost).mean()) - budget

    low, high = centre - 1.0, centre + 1.0
    while excess(low) < 0.0 and low > centre - REACH:
        low -= 2.0
    while excess(high) > 0.0 and high < centre + REACH:
        high += 2.0
    root = brentq(excess, low, high, xtol=1e-10, rtol=1e-12)
    return float(np.exp(-root / 2.0))


def _scale_of(spent: Callable[[float], tuple[float, float]], budget: float, *, start: float) -> float:
    """The scale at which `spent`, increasing and piecewise linear, is the budget: bracketed Newton."""
    low, high, scale = 0.0, np.inf, start
    for _ in range(ROUNDS):
        cost, slope = spent(scale)
        if abs(cost - budget) <= TOLERANCE * budget:
            return scale
        low, high = (scale, high) if cost < budget else (low, scale)
        step = scale + (budget - cost) / slope if slope > 0 else np.inf
        middle = 2.0 * scale if np.isinf(high) else 0.5 * (low + high)
        scale = step if low < step < high else middle
    return scale


def _priced(height: Floats, terms: Terms, price: float) -> Floats:
    return _with_price(height, terms, price, start=np.zeros(len(height)))[0]


def _with_price(height: Floats, terms: Terms, price: float, *, start: Floats) -> tuple[Floats, Floats]:
    """pi and the contexts' own prices ν >= 0 at λ = `price`; bracketed Newton on every context at once."""
    base = price * terms.cost
    free = _allotted(height, base, terms.floor)
    full = free.sum(axis=1) > 1.0
    own = np.zeros(len(height))
    if full.any():
        own[full] = _own_prices(height[full], base, terms.floor, start[full])
        free[full] = _allotted(height[full], base + own[full, None], terms.floor)
    return free, own


def _own_prices(height: Floats, base: Floats, floor: float, start: Floats) -> Floats:
    """ν (u,) with Σ clip(h/√(base + ν), α, 1) = 1, which falls in ν."""
    low = np.zeros(len(height))
    # There every pair that is above the floor has at most its share of what the floors leave.
    high = (height.sum(axis=1) / max(1.0 - floor * height.shape[1], 1e-9)) ** 2
    price = np.where((start > low) & (start < high), start, np.sqrt(np.maximum(high, 1e-300)) * 1e-3)
    for _ in range(ROUNDS):
        under = base + price[:, None]
        raised = np.divide(height, np.sqrt(under), out=np.full(height.shape, np.inf), where=under > 0)
        excess = np.clip(raised, floor, 1.0).sum(axis=1) - 1.0
        if (np.abs(excess) <= TOLERANCE * 10).all():
            return price
        low, high = np.where(excess > 0, price, low), np.where(excess > 0, high, price)
        moving = (raised > floor) & (raised < 1.0)
        free = np.where(moving, raised, 0.0)
        total, fall = free.sum(axis=1), (free / np.maximum(under, 1e-300)).sum(axis=1)
        # Newton's step for 1/(Σ h/√(base + ν))², which is all but linear in ν.
        wanted = total - excess
        known = (fall > 0) & (wanted > 0)
        step = price + np.divide(
            (total / np.where(known, wanted, 1.0)) ** 2 - 1.0,
            fall / np.maximum(total, 1e-300),
            out=np.zeros_like(excess),
            where=known,
        )
        inside = (step > low) & (step < high) & known
        price = np.where(inside, step, 0.5 * (low + high))
    return price


def _allotted(height: Floats, price: Floats, floor: float) -> Floats:
    raised = np.divide(height, np.sqrt(price), out=np.where(height > 0, np.inf, 0.0), where=price > 0)
    return np.clip(raised, floor, 1.0)


def _steep(height: Floats, cost: Floats) -> Floats:
    """h/√c; a pair that costs nothing is always drawn."""
    root = np.broadcast_to(np.sqrt(cost), height.shape)
    steep: Floats = np.divide(height, root, out=np.full(height.shape, np.inf), where=root > 0)
    return steep
