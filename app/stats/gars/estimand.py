"""What a generalised average ranking score is: a function of pairwise scores with its gradient."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

import numpy as np

from app.stats.gars.graph import Graph
from app.stats.types import Floats, Ints


class Estimand(Protocol):
    """F of a GARS theta = E[F(mu(X))] (DMLRank, arXiv 2601.21816, Section 4), written on the scores p of ordered pairs.

    With q_jk = dp_jk/dmu_jk the Jacobian block of the paper is J_jk = dF/dp_jk ⊗ q_jk.
    """

    @property
    def name(self) -> str:
        """How the estimand is called in requests and answers."""

    def value(self, p: Floats, graph: Graph) -> Floats:
        """F at every pattern.

        Parameters
        ----------
        p : (u, K, K) score of the first item of each ordered pair, in [0, 1].
        graph : the supported pairs.

        Returns
        -------
        (u, K), 0 for items outside the ranked component.
        """

    def gradient_at(self, p: Floats, index: Ints, left: Ints, right: Ints, graph: Graph) -> Floats:
        """dF/dp_{left,right} at pattern `index`, one row a request.

        Parameters
        ----------
        p : (u, K, K) as in `value`.
        index : (m,) patterns.
        left, right : (m,) the ordered pairs.
        graph : the supported pairs.

        Returns
        -------
        (m, K), 0 where the order carries no weight and for items outside the ranked component.
        """


@runtime_checkable
class PairwiseEstimand(Estimand, Protocol):
    """An estimand whose gradient by p_jk depends on p_jk alone, so that no other pair's score is needed for it."""

    def gradient_of_pairs(self, p: Floats, left: Ints, right: Ints, graph: Graph) -> Floats:
        """dF/dp_{left,right} from the scores p (m,) of these very pairs: (m, K)."""


class ShareEstimand(ABC):
    """An estimand that depends on p through the shares s alone.

    As s_kj = 1 - s_jk moves with s_jk, dF/dp_jk = o_jk (dF/ds_jk - dF/ds_kj).
    """

    @abstractmethod
    def of_shares(self, s: Floats, graph: Graph) -> Floats:
        """F (u, K) of shares s (u, K, K)."""

    @abstractmethod
    def slope_at(self, s: Floats, index: Ints, left: Ints, right: Ints, graph: Graph) -> Floats:
        """dF/ds_{left,right} - dF/ds_{right,left}: (m, K)."""

    def value(self, p: Floats, graph: Graph) -> Floats:
        """F at every pattern; see `Estimand.value`."""
        return self.of_shares(graph.shares(p), graph)

    def gradient_at(self, p: Floats, index: Ints, left: Ints, right: Ints, graph: Graph) -> Floats:
        """dF/dp at the requested pairs; see `Estimand.gradient_at`."""
        weight = graph.order[left, right][:, None]
        gradient: Floats = weight * self.slope_at(graph.shares(p), index, left, right, graph)
        return gradient


class RivalMean(ShareEstimand):
    """An estimand whose F_j depends on item j's own shares s_jk alone."""

    @abstractmethod
    def own_slopes(self, s: Floats, graph: Graph) -> Floats:
        """dF_j/ds_jk: (u, K, K), 0 off the edges."""

    def slope_at(self, s: Floats, index: Ints, left: Ints, right: Ints, graph: Graph) -> Floats:
        """e_j dF_j/ds_jk - e_k dF_k/ds_kj at the requested pairs."""
        own = self.own_slopes(s, graph)
        return two_columns(own[index, left, right], -own[index, right, left], (left, right), graph.n_items)

    def quadratic(self, p: Floats, graph: Graph, weight: Floats) -> Floats:
        """o_jk² (W_jj f_jk² + W_kk f_kj² - 2 W_jk f_jk f_kj) with f = dF_j/ds_jk: (u, K, K)."""
        own = self.own_slopes(graph.shares(p), graph)
        other = np.swapaxes(own, -1, -2)
        diagonal = np.diagonal(weight)
        forms: Floats = diagonal[:, None] * own**2 + diagonal * other**2 - 2.0 * weight * own * other
        return graph.order**2 * forms

    def outer(self, p: Floats, graph: Graph, coefficient: Floats) -> Floats:
        """Σ ω g g' with g_jk = o_jk (f_jk e_j - f_kj e_k); see `outer`."""
        own = self.own_slopes(graph.shares(p), graph)
        each = coefficient * graph.order**2
        both = each + np.swapaxes(each, -1, -2)
        total: Floats = -(both * own * np.swapaxes(own, -1, -2)).sum(axis=0)
        np.fill_diagonal(total, (both * own**2).sum(axis=(0, 2)))
        return total


def two_columns(first: Floats, second: Floats, pair: tuple[Ints, Ints], n_items: int) -> Floats:
    """(m, K) rows that hold `first` (m,) in the column of the left item, `second` in that of the right, else 0."""
    rows = np.zeros((first.size, n_items))
    each = np.arange(first.size)
    rows[each, pair[0]] = first
    rows[each, pair[1]] = second
    return rows
