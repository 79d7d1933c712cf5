"""Rank centrality and its damped form (PageRank): where a walk towards better items spends its time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.errors import InvalidInput
from app.stats.gars.estimand import ShareEstimand
from app.stats.gars.graph import Graph
from app.stats.types import Floats, Ints

# Keeps the walk irreducible where a share is exactly 0.
SMALLEST_SHARE = 1e-9


@dataclass(frozen=True)
class RankCentrality(ShareEstimand):
    """Stationary distribution of the row-normalised walk (DMLRank, Appendix E.3).

    R_ij = s_ji on edges, T = R / row sums d, T_δ = (1-δ) T + δ/m over the m items of the component, and
    F = A⁻¹ 1 with A = I - T_δᵀ + 11ᵀ.

    Parameters
    ----------
    damping : δ in [0, 1]; 0 is rank centrality.
    """

    damping: float = 0.0
    name: str = "rc"

    def __post_init__(self) -> None:
        if not 0.0 <= self.damping <= 1.0:
            raise InvalidInput(f"damping {self.damping} outside [0, 1]")

    def of_shares(self, s: Floats, graph: Graph) -> Floats:
        """Stationary probabilities: (u, K), summing to 1."""
        walk, _ = _walk(s, graph)
        size = graph.ranked.size
        value = np.zeros(s.shape[:-1])
        value[..., graph.ranked] = np.linalg.solve(self._system(walk), np.ones((size, 1)))[..., 0]
        return value

    def slope_at(self, s: Floats, index: Ints, left: Ints, right: Ints, graph: Graph) -> Floats:
        """(1-δ) times the difference over the two directions of (F_b/d_b) A⁻¹ (e_a - T_bᵀ) = dF/ds_ab: (m, K)."""
        used, at = np.unique(index, return_inverse=True)
        walk, total = _walk(s[used], graph)
        inverse = np.linalg.inv(self._system(walk))
        pace = (1.0 - self.damping) * inverse.sum(axis=-1) / total
        # Rows of the transposes are the columns A⁻¹ e_a and A⁻¹ T_bᵀ.
        unit = np.swapaxes(inverse, -1, -2)
        step = walk @ unit
        place = np.maximum(np.cumsum(graph.component) - 1, 0)
        j, k = place[left], place[right]
        slope = pace[at, k][:, None] * (unit[at, j] - step[at, k]) - pace[at, j][:, None] * (unit[at, k] - step[at, j])
        gradient = np.zeros((index.size, graph.n_items))
        gradient[:, graph.ranked] = slope
        return gradient

    def quadratic(self, p: Floats, graph: Graph, weight: Floats) -> Floats:
        """g' W g of every ordered pair in O(K³) a pattern; see `quadratic`.

        g_jk = o_jk A⁻¹ (c_k a - c_j b) with a = e_j - T_kᵀ, b = e_k - T_jᵀ and c = (1-δ) F/d, so all that is needed is
        in M = A⁻ᵀ W A⁻¹, B = M Tᵀ and N = T M Tᵀ: aᵀMa = M_jj - 2 B_jk + N_kk, aᵀMb = M_jk - B_jj - B_kk + N_kj.
        """
        walk, total = _walk(graph.shares(p), graph)
        inverse = np.linalg.inv(self._system(walk))
        pace = (1.0 - self.damping) * inverse.sum(axis=-1) / total
        row, column = np.ix_(graph.ranked, graph.ranked)
        middle = np.swapaxes(inverse, -1, -2) @ weight[row, column] @ inverse
        mixed = middle @ np.swapaxes(walk, -1, -2)
        ends = walk @ mixed
        own = [np.diagonal(each, axis1=-2, axis2=-1) for each in (middle, mixed, ends)]
        first = own[0][..., :, None] - 2.0 * mixed + own[2][..., None, :]
        cross = middle - own[1][..., :, None] - own[1][..., None, :] + np.swapaxes(ends, -1, -2)
        scaled = pace[..., None, :] ** 2 * first
        forms = scaled + np.swapaxes(scaled, -1, -2) - 2.0 * pace[..., :, None] * pace[..., None, :] * cross
        found = np.zeros(p.shape)
        found[..., row, column] = graph.order[row, column] ** 2 * np.maximum(forms, 0.0)
        return found

    def outer(self, p: Floats, graph: Graph, coefficient: Floats) -> Floats:
        """Σ ω g g' in O(K³) a pattern; see `outer`.

        g_jk = o_jk A⁻¹ (c_k e_j - c_j e_k + y_j - y_k) with y_j = c_j T_jᵀ, and g_kj = -g_jk o_kj / o_jk.
        """
        walk, total = _walk(graph.shares(p), graph)
        inverse = np.linalg.inv(self._system(walk))
        pace = (1.0 - self.damping) * inverse.sum(axis=-1) / total
        row, column = np.ix_(graph.ranked, graph.ranked)
        each = (coefficient * graph.order**2)[..., row, column]
        both = each + np.swapaxes(each, -1, -2)
        degree = both.sum(axis=-1)[..., None]
        steps = pace[..., None] * walk
        paced = both * pace[..., None, :]
        units = -paced * pace[..., None]
        place = np.arange(graph.ranked.size)
        units[..., place, place] = (paced * pace[..., None, :]).sum(axis=-1)
        cross = paced.sum(axis=-1)[..., None] * steps - paced @ steps
        moves = np.swapaxes(steps, -1, -2) @ (degree * steps - both @ steps)
        middle = units + cross + np.swapaxes(cross, -1, -2) + moves
        found = np.zeros((graph.n_items, graph.n_items))
        found[row, column] = (inverse @ middle @ np.swapaxes(inverse, -1, -2)).sum(axis=0)
        return found

    def _system(self, walk: Floats) -> Floats:
        size = walk.shape[-1]
        damped = (1.0 - self.damping) * walk + self.damping / size
        system: Floats = np.eye(size) - np.swapaxes(damped, -1, -2) + 1.0
        return system


def _walk(s: Floats, graph: Graph) -> tuple[Floats, Floats]:
    """Undamped T (u, m, m) and row sums d (u, m) over the component; a lone item stays where it is."""
    row, column = np.ix_(graph.ranked, graph.ranked)
    losses = np.where(graph.edges[row, column], np.maximum(s[..., column, row], SMALLEST_SHARE), 0.0)
    if graph.ranked.size == 1:
        return np.ones_like(losses), np.ones(losses.shape[:-1])
    total = losses.sum(axis=-1)
    return losses / total[..., None], total
