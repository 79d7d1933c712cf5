"""Which functional of the covariance a policy makes small: weights W of tr(W Sigma(pi))."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.stats.acquisition.beliefs import Beliefs
from app.stats.gars import Estimand, Graph
from app.stats.types import Bools, Floats

Objective = Literal["a-optimal", "d-optimal", "e-optimal", "contrast", "uniform"]

D_STEPS = 4
E_STEPS = 40
BLEND = 0.25
RANK_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Design:
    """A problem whose answer depends on W alone.

    Parameters
    ----------
    beliefs : about the contexts at hand.
    estimand, graph : what is scored.
    allocate : propensities (u, K, K) from sensitivities (V, u, K, K), at the budget.
    """

    beliefs: Beliefs
    estimand: Estimand
    graph: Graph
    allocate: Callable[[Floats], Floats]

    def covariance(self, weight: Floats) -> Floats:
        """Sigma of the policy that is best for W."""
        propensity = self.allocate(self.beliefs.sensitivities(self.estimand, self.graph, weight))
        return self.beliefs.covariance(self.estimand, self.graph, propensity)


def d_weight(design: Design) -> Floats:
    """W = Sigma⁺ on the identified subspace: a fixed point along which log det Sigma falls.

    Returns
    -------
    (K, K), of trace 1; the identity's where nothing is identified.
    """
    weight = _scaled(np.eye(design.graph.n_items))
    covariance = design.covariance(weight)
    best = _log_volume(covariance)
    for _ in range(D_STEPS):
        trial = _scaled(_pseudo_inverse(covariance))
        covariance = design.covariance(trial)
        volume = _log_volume(covariance)
        if volume >= best:
            break
        weight, best = trial, volume
    return weight


def e_weight(design: Design) -> tuple[Floats, float]:
    """Frank-Wolfe on the largest eigenvalue of Sigma: W ← (1-γ) W + γ v v', γ = 2/(t+3), from I/(d-1).

    min over pi of max over W of tr(W Sigma) is a saddle point: tr(W Sigma(pi_W)), over W's trace on Sigma's range,
    bounds the least largest eigenvalue from below, which certifies the best policy seen.

    Returns
    -------
    W (K, K) of the policy with the least largest eigenvalue, and its relative gap to the bound.
    """
    size = design.graph.n_items
    weight = np.eye(size) / max(size - 1, 1)
    best, least, bound = weight, np.inf, 0.0
    for step in range(E_STEPS):
        covariance = design.covariance(weight)
        values, vectors = np.linalg.eigh(covariance)
        if values[-1] < least:
            best, least = weight, float(values[-1])
        known = vectors[:, values > RANK_TOLERANCE * values[-1]]
        trace = float((weight * (known @ known.T)).sum())
        bound = max(bound, float((weight * covariance).sum()) / max(trace, 1e-300))
        rate = 2.0 / (step + 3.0)
        weight = (1.0 - rate) * weight + rate * np.outer(vectors[:, -1], vectors[:, -1])
    return best, (least - bound) / least if least > 0 else 0.0


def contrast_weight(open_pairs: Bools) -> Floats:
    """C/tr C + I/(4K), C = Σ (e_a - e_b)(e_a - e_b)' over unresolved pairs; I/K where none is open.

    Parameters
    ----------
    open_pairs : (K, K) neighbours in the ranking whose order is not settled.
    """
    size = len(open_pairs)
    both = (open_pairs | open_pairs.T).astype(np.float64)
    np.fill_diagonal(both, 0.0)
    contrasts = np.diag(both.sum(axis=1)) - both
    total = float(np.trace(contrasts))
    return np.eye(size) / size if total == 0.0 else contrasts / total + BLEND * np.eye(size) / size


def _scaled(weight: Floats) -> Floats:
    total = float(np.trace(weight))
    return weight / total if total > 0 else np.eye(len(weight)) / len(weight)


def _pseudo_inverse(covariance: Floats) -> Floats:
    inverse: Floats = np.linalg.pinv(covariance, rcond=RANK_TOLERANCE, hermitian=True).astype(np.float64)
    return inverse


def _log_volume(covariance: Floats) -> float:
    """Log determinant on the identified subspace."""
    values = np.linalg.eigvalsh(covariance)
    known = values[values > RANK_TOLERANCE * max(float(values[-1]), 0.0)]
    return float(np.log(known).sum()) if known.size else np.inf
