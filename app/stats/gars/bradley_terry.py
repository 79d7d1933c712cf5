"""The Bradley-Terry projection: the additive scores nearest to the pairwise log-odds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from app.stats.gars.graph import Graph
from app.stats.gars.quadratic import differences, laplacian
from app.stats.types import Floats, Ints

CLIP = 1e-3


@dataclass(frozen=True)
class BradleyTerry:
    """Least-squares projection of log-odds on score differences (DMLRank, Eq. (7) and Appendix E.2).

    With l_jk = o_jk logit p_jk - o_kj logit p_kj, F = argmin over Σ r = 0 of Σ_edges (l_jk - r_j + r_k)² = L⁺ Σ_k l_·k,
    L the Laplacian of the edges. p is clipped to [1e-3, 1 - 1e-3]; where it is, the gradient is 0.
    """

    name: str = "bt"

    def value(self, p: Floats, graph: Graph) -> Floats:
        """F at every pattern, log-odds that sum to 0 over the component; see `Estimand.value`."""
        odds = graph.order * logit(np.clip(p, CLIP, 1.0 - CLIP))
        flow = odds.sum(axis=-1) - odds.sum(axis=-2)
        value: Floats = flow @ graph.laplacian_inverse
        return value

    def gradient_at(self, p: Floats, index: Ints, left: Ints, right: Ints, graph: Graph) -> Floats:
        """dF/dp at the requested pairs; see `Estimand.gradient_at`."""
        return self.gradient_of_pairs(p[index, left, right], left, right, graph)

    def gradient_of_pairs(self, p: Floats, left: Ints, right: Ints, graph: Graph) -> Floats:
        """L⁺(e_j - e_k) o_jk / (p (1 - p)); see `PairwiseEstimand`."""
        slope = graph.order[left, right] * _slope(p)
        inverse = graph.laplacian_inverse
        gradient: Floats = slope[:, None] * (inverse[left] - inverse[right])
        return gradient

    def quadratic(self, p: Floats, graph: Graph, weight: Floats) -> Floats:
        """g' W g = (o_jk / (p (1 - p)))² times the squared difference in L⁺ W L⁺; see `quadratic`."""
        inverse = graph.laplacian_inverse
        forms: Floats = (graph.order * _slope(p)) ** 2 * differences(inverse @ weight @ inverse)
        return forms

    def outer(self, p: Floats, graph: Graph, coefficient: Floats) -> Floats:
        """Σ ω g g' = L⁺ Laplacian(Σ_u ω (o / (p (1 - p)))²) L⁺; see `outer`."""
        inverse = graph.laplacian_inverse
        total: Floats = inverse @ laplacian((coefficient * (graph.order * _slope(p)) ** 2).sum(axis=0)) @ inverse
        return total

    def clipped(self, p: Floats, graph: Graph) -> int:
        """How many scores (u, K, K) that carry weight were clipped."""
        return int(np.count_nonzero(~_inside(p) & (graph.order > 0)))


def _inside(p: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return (p > CLIP) & (p < 1.0 - CLIP)


def _slope(p: Floats) -> Floats:
    """1 / (p (1 - p)), 0 where p is clipped."""
    slope: Floats = np.divide(1.0, p * (1.0 - p), out=np.zeros(p.shape), where=_inside(p))
    return slope
