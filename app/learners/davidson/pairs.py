"""Stage (c): shrunken effects of single pairs, where intransitivity goes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from app.learners.davidson.cells import Cells, sums
from app.stats.types import Floats, Ints


@dataclass(frozen=True, slots=True)
class PairEffects:
    """g_jk(x) = γ_jkᵀ (1, x) for j < k and g_kj = -g_jk.

    Parameters
    ----------
    gamma : (K (K - 1) / 2, 1 + d) pairs in the order of `numpy.triu_indices`; (pairs, 1) when not linear in x.
    n_items : K.
    """

    gamma: Floats
    n_items: int

    def at(self, design: Floats, left: Ints, right: Ints) -> Floats:
        """(m,) the effect of one ordered pair per row of the design (m, 1 + d); 0 on the diagonal."""
        if not self.gamma.size:
            return np.zeros(left.size)
        pair, sign = pair_index(left, right, self.n_items)
        effects: Floats = np.einsum("mf,mf->m", design[:, : self.gamma.shape[1]], self.gamma[pair])
        return sign * effects

    def everywhere(self, design: Floats) -> Floats:
        """(u, K, K) of every ordered pair."""
        own = design[:, : self.gamma.shape[1]] @ self.gamma.T
        signed = np.concatenate([own, -own, np.zeros((len(design), 1))], axis=1)
        effects: Floats = signed.take(places(self.n_items), axis=1)
        return effects


@lru_cache(maxsize=8)
def places(n_items: int) -> Ints:
    """(K, K) where each ordered pair's effect is among those of the unordered pairs, their negatives and a zero."""
    first, second = np.triu_indices(n_items, 1)
    places = np.full((n_items, n_items), 2 * first.size)
    places[first, second] = np.arange(first.size)
    places[second, first] = first.size + np.arange(first.size)
    return places


def pair_index(left: Ints, right: Ints, n_items: int) -> tuple[Ints, Ints]:
    """The unordered pair's place in `numpy.triu_indices`, and +1 when the lower item is on the left, -1, or 0."""
    low, high = np.minimum(left, right), np.maximum(left, right)
    index = low * n_items - low * (low + 1) // 2 + high - low - 1
    return np.where(low == high, 0, index), np.sign(right - left)


def fit_pairs(design: Floats, cells: Cells, *, slope: Floats, curve: Floats, n_items: int) -> PairEffects:
    """One shrunken Newton step per pair and covariate, G / (H + 1/τ²).

    Of a residual score G with information H: E G² = H + H² τ², so τ² = Σ (G² - H) / Σ H², once over the pairs'
    constants and once over their slopes. The items' constants, hardly shrunk, are fitted before and take K - 1 of the
    pairs' degrees of freedom with them: there the noise expected in Σ G² is that share less.

    Parameters
    ----------
    design : (u, 1 + d).
    cells : m graded cells.
    slope, curve : (m,) first and second derivative of each cell's weighted loss in its D.
    n_items : K.
    """
    pairs = n_items * (n_items - 1) // 2
    pair, sign = pair_index(cells.left, cells.right, n_items)
    columns = range(design.shape[1])
    score = np.stack([sums(pair, -slope * sign * design[cells.pattern, f], pairs) for f in columns], axis=1)
    information = np.stack([sums(pair, curve * design[cells.pattern, f] ** 2, pairs) for f in columns], axis=1)
    noise = max(pairs - (n_items - 1), 0) / max(pairs, 1)
    variance = [
        _variance(score[:, :1], information[:, :1], noise),
        _variance(score[:, 1:], information[:, 1:], 1.0),
    ]
    strength = np.repeat(variance, [1, design.shape[1] - 1])
    gamma = score * strength / (information * strength + 1)
    return PairEffects(gamma if variance[1] > 0 else gamma[:, :1], n_items)


def _variance(score: Floats, information: Floats, noise: float) -> float:
    total = float((information**2).sum())
    excess = float((score**2 - noise * information).sum())
    return max(excess, 0.0) / total if total > 0 else 0.0
