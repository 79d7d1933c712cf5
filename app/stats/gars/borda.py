"""Borda: the mean share against the supported rivals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.gars.estimand import two_columns
from app.stats.gars.graph import Graph
from app.stats.gars.quadratic import differences, laplacian
from app.stats.types import Floats, Ints


@dataclass(frozen=True)
class Borda:
    """F_j = mean of s_jk over the supported rivals k (DMLRank, Appendix E.1)."""

    name: str = "borda"

    def value(self, p: Floats, graph: Graph) -> Floats:
        """Mean share in [0, 1]; see `Estimand.value`."""
        value: Floats = graph.shares(p).sum(axis=-1) / np.maximum(graph.degree, 1.0)
        return value

    def gradient_at(self, p: Floats, index: Ints, left: Ints, right: Ints, graph: Graph) -> Floats:
        """dF/dp at the requested pairs; see `Estimand.gradient_at`."""
        return self.gradient_of_pairs(p[index, left, right], left, right, graph)

    def gradient_of_pairs(self, p: Floats, left: Ints, right: Ints, graph: Graph) -> Floats:  # noqa: ARG002 - linear in p
        """o_jk (e_j / degree_j - e_k / degree_k); see `PairwiseEstimand`."""
        slope = graph.order[left, right]
        degree = np.maximum(graph.degree, 1.0)
        return two_columns(slope / degree[left], -slope / degree[right], (left, right), graph.n_items)

    def quadratic(self, p: Floats, graph: Graph, weight: Floats) -> Floats:
        """g' W g = o_jk² (D W D)'s squared difference with D = diag(1 / degree); see `quadratic`."""
        scale = 1.0 / np.maximum(graph.degree, 1.0)
        forms: Floats = graph.order**2 * differences(scale[:, None] * weight * scale)
        return np.broadcast_to(forms, p.shape)

    def outer(self, p: Floats, graph: Graph, coefficient: Floats) -> Floats:  # noqa: ARG002 - linear in p
        """Σ ω g g' = D Laplacian(Σ_u ω o²) D; see `outer`."""
        scale = 1.0 / np.maximum(graph.degree, 1.0)
        total: Floats = scale[:, None] * laplacian(coefficient.sum(axis=0) * graph.order**2) * scale
        return total
