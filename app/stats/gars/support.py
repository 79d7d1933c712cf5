"""How much of a score rests on pairs that were never compared."""

from __future__ import annotations

import numpy as np

from app.stats.gars.estimand import Estimand
from app.stats.gars.graph import Graph
from app.stats.types import Bools, Floats


def unsupported_shares(estimand: Estimand, p: Floats, graph: Graph, *, size: Floats, supported: Bools) -> Floats:
    """Share of each item's Jacobian mass Σ_jk |J_jk| that falls on unsupported pairs.

    Costs u K³, a pattern at a time: at most K³ numbers are held. The share is descriptive, so a few dozen patterns of
    a large board tell it well enough; which ones is the caller's choice.

    Parameters
    ----------
    estimand : the score.
    p : (u, K, K) scores of the ordered pairs.
    graph : on which the estimand is taken (the complete one, as a rule).
    size : (u, K, K) Σ_c |q_jkc| of each ordered pair, times the pattern's weight.
    supported : (K, K) pairs with votes; a pair counts as supported when either order does.

    Returns
    -------
    (K,) in [0, 1]; 0 for items whose score moves with no pair.
    """
    left, right = np.nonzero(graph.order)
    bare = ~(supported | supported.T)[left, right]
    mass = np.zeros((2, graph.n_items))
    at = np.zeros_like(left)
    for pattern in range(p.shape[0]):
        gradient = np.abs(estimand.gradient_at(p[pattern : pattern + 1], at, left, right, graph))
        weight = size[pattern, left, right]
        mass += np.stack([weight, weight * bare]) @ gradient
    shares: Floats = np.divide(mass[1], mass[0], out=np.zeros(graph.n_items), where=mass[0] > 0)
    return shares
