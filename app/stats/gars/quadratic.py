"""Squared lengths and summed squares of an estimand's gradients, over every ordered pair at once."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Protocol, cast

import numpy as np

from app.stats.gars.estimand import Estimand
from app.stats.gars.graph import Graph
from app.stats.types import Floats

# Numbers of the gradients (K², K) held at once where an estimand has no closed form.
HELD = 4_000_000


class QuadraticEstimand(Estimand, Protocol):
    """An estimand with closed forms for g' W g and Σ ω g g', g_jk = dF/dp_jk."""

    def quadratic(self, p: Floats, graph: Graph, weight: Floats) -> Floats:
        """See `quadratic`."""

    def outer(self, p: Floats, graph: Graph, coefficient: Floats) -> Floats:
        """See `outer`."""


def quadratic(estimand: Estimand, p: Floats, graph: Graph, weight: Floats) -> Floats:
    """g_jk' W g_jk of every ordered pair, g_jk = dF/dp_jk.

    Parameters
    ----------
    p : (u, K, K) scores of the first item.
    graph : the pairs that count.
    weight : (K, K) symmetric, positive semi-definite W; the identity gives |g_jk|².

    Returns
    -------
    (u, K, K), 0 on the diagonal and where an order carries no weight.
    """
    if _has_closed_form(type(estimand)):
        return cast(QuadraticEstimand, estimand).quadratic(p, graph, weight)
    left, right = np.nonzero(graph.order)
    found = np.zeros(p.shape)
    for rows, gradient in _gradients(estimand, p, graph):
        forms = ((gradient @ weight) * gradient).sum(axis=1)
        found[rows, left, right] = forms.reshape(len(found[rows]), left.size)
    return found


def outer(estimand: Estimand, p: Floats, graph: Graph, coefficient: Floats) -> Floats:
    """Σ over patterns and ordered pairs of ω_jk g_jk g_jk', g_jk = dF/dp_jk.

    Parameters
    ----------
    p : (u, K, K) scores of the first item.
    graph : the pairs that count.
    coefficient : (u, K, K) ω.

    Returns
    -------
    (K, K), symmetric.
    """
    if _has_closed_form(type(estimand)):
        return cast(QuadraticEstimand, estimand).outer(p, graph, coefficient)
    left, right = np.nonzero(graph.order)
    total = np.zeros((graph.n_items, graph.n_items))
    for rows, gradient in _gradients(estimand, p, graph):
        total += gradient.T @ (coefficient[rows, left, right].reshape(-1, 1) * gradient)
    return total


@cache
def _has_closed_form(kind: type[Estimand]) -> bool:
    """Whether estimands of the class do; to ask the protocol costs more than the form on a small board."""
    return hasattr(kind, "quadratic") and hasattr(kind, "outer")


def _gradients(estimand: Estimand, p: Floats, graph: Graph) -> Iterator[tuple[slice, Floats]]:
    """(rows · pairs, K) gradients of the pairs that carry weight, for runs of patterns."""
    left, right = np.nonzero(graph.order)
    step = max(1, HELD // max(1, left.size * graph.n_items))
    for start in range(0, len(p), step):
        part = p[start : start + step]
        index = np.repeat(np.arange(len(part)), left.size)
        yield (
            slice(start, start + step),
            estimand.gradient_at(part, index, np.tile(left, len(part)), np.tile(right, len(part)), graph),
        )


def laplacian(weight: Floats) -> Floats:
    """Σ_jk w_jk (e_j - e_k)(e_j - e_k)' over ordered pairs: (K, K)."""
    both = weight + weight.T
    total: Floats = np.diag(both.sum(axis=1)) - both
    return total


def differences(weight: Floats) -> Floats:
    """(e_j - e_k)' W (e_j - e_k) = W_jj + W_kk - 2 W_jk: (K, K)."""
    diagonal = np.diagonal(weight)
    squares: Floats = diagonal[:, None] + diagonal - 2.0 * weight
    return squares
