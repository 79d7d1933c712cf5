"""The comparison graph: which pairs count, and which of their two orders."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.sparse.csgraph import connected_components

from app.stats.errors import InvalidInput
from app.stats.types import Bools, Floats, Ints


@dataclass(frozen=True, eq=False)
class Graph:
    """Supported pairs, the weight of each order, and the connected component that is ranked.

    Estimands answer for the items of `component` only: in the columns of the other items every value and gradient
    is 0, and the caller reports those items as disconnected.

    Parameters
    ----------
    order : (K, K) weight o_jk of the order "j shown first" in {0, ½, 1}; o_jk + o_kj is 1 on a supported pair
        within the component and 0 elsewhere.
    component : (K,) the items ranked.

    Raises
    ------
    InvalidInput
        Where the weights are others, or an edge leaves the component.
    """

    order: Floats
    component: Bools

    def __post_init__(self) -> None:
        both = self.order + self.order.T
        if self.order.ndim != 2 or self.component.shape != self.order.shape[:1]:
            raise InvalidInput(f"order weights {self.order.shape} and component {self.component.shape} do not fit")
        if not np.isin(self.order, (0.0, 0.5, 1.0)).all() or not np.isin(both, (0.0, 1.0)).all():
            raise InvalidInput("order weights must be 0, ½ or 1 and sum to 0 or 1 over the two orders")
        if self.order.diagonal().any() or both[~self.component].any():
            raise InvalidInput("an edge joins an item to itself or leaves the component")

    @classmethod
    def complete(cls, n_items: int) -> Graph:
        """Every pair, both orders alike."""
        return cls((1.0 - np.eye(n_items)) / 2, np.ones(n_items, dtype=np.bool_))

    @classmethod
    def largest(cls, order: Floats, votes: Floats | Ints) -> Graph:
        """The component with most votes; of equals the one with more items, then with the lowest item.

        Parameters
        ----------
        order : (K, K) order weights of all supported pairs.
        votes : (K, K) votes of each ordered pair.
        """
        label = components((order + order.T) > 0)
        items = np.bincount(label)
        weight = np.bincount(label, weights=votes.sum(axis=1) + votes.sum(axis=0))
        best = np.lexsort((np.arange(items.size), -items, -weight))[0]
        component = label == best
        return cls(np.where(np.outer(component, component), order, 0.0), component)

    @property
    def n_items(self) -> int:
        return int(self.component.size)

    @cached_property
    def edges(self) -> Bools:
        """(K, K) supported unordered pairs, symmetric."""
        edges: Bools = (self.order + self.order.T) > 0
        return edges

    @cached_property
    def degree(self) -> Floats:
        """(K,) number of supported rivals."""
        degree: Floats = self.edges.sum(axis=1).astype(np.float64)
        return degree

    @cached_property
    def ranked(self) -> Ints:
        """(m,) indices of the component's items."""
        return np.flatnonzero(self.component)

    @cached_property
    def laplacian_inverse(self) -> Floats:
        """(K, K) L⁺, the pseudo-inverse of the Laplacian of the edges; 0 outside the component."""
        size = max(self.ranked.size, 1)
        block = np.ix_(self.ranked, self.ranked)
        laplacian = np.diag(self.degree) - self.edges
        inverse = np.zeros(self.order.shape)
        # L + 11ᵀ/m is invertible on a connected component and has L⁺ + 11ᵀ/m as its inverse.
        inverse[block] = np.linalg.inv(laplacian[block] + 1.0 / size) - 1.0 / size
        return inverse

    def shares(self, p: Floats) -> Floats:
        """s_jk = o_jk p_jk + o_kj (1 - p_kj): how well j does against k over the supported orders.

        Parameters
        ----------
        p : (..., K, K) score of the first item of each ordered pair, in [0, 1].

        Returns
        -------
        (..., K, K) with s_jk + s_kj = 1 on edges and 0 elsewhere.
        """
        shares: Floats = self.order * p + self.order.T * (1.0 - np.swapaxes(p, -1, -2))
        return shares


def components(edges: Bools, *, strong: bool = False) -> Ints:
    """Label the connected components of a graph, numbered in the order of their lowest item.

    Parameters
    ----------
    edges : (K, K) adjacency; read as directed when `strong`.
    strong : strongly connected components instead of weakly connected ones.

    Returns
    -------
    (K,) labels 0, 1, …
    """
    _, label = connected_components(edges, directed=True, connection="strong" if strong else "weak")
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)
