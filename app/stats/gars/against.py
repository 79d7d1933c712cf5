"""One row of the pairwise table as an estimand."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.gars.graph import Graph
from app.stats.types import Floats, Ints


@dataclass(frozen=True)
class Against:
    """The shares of one item against every other: F_k = s_jk, 0 where the pair has no edge."""

    item: int

    @property
    def name(self) -> str:
        return f"against-{self.item}"

    def value(self, p: Floats, graph: Graph) -> Floats:
        """(u, K) shares of the item; see `Estimand.value`."""
        j = self.item
        shares: Floats = graph.order[j] * p[:, j, :] + graph.order[:, j] * (1.0 - p[:, :, j])
        return shares

    def gradient_at(self, p: Floats, index: Ints, left: Ints, right: Ints, graph: Graph) -> Floats:  # noqa: ARG002
        """o_jk in the rival's column where the item was on the left, -o_kj where it was on the right."""
        gradient = np.zeros((index.size, graph.n_items))
        first, second = np.flatnonzero(left == self.item), np.flatnonzero(right == self.item)
        gradient[first, right[first]] = graph.order[left[first], right[first]]
        gradient[second, left[second]] = -graph.order[left[second], right[second]]
        return gradient
