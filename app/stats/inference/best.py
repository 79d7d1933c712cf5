"""How likely each item is the best."""

from __future__ import annotations

import numpy as np

from app.stats.inference.gaussian import factor
from app.stats.inference.ranks import TIE
from app.stats.types import Estimate, Floats

DRAWS = 2**15
BLOCK = 2**12


def probability_best(estimate: Estimate, *, seed: int = 0) -> Floats:
    """Share of draws of N(value, covariance) in which each item has the largest score.

    Parameters
    ----------
    estimate : d scores and their covariance.
    seed : of the draws; equal seeds give equal answers.

    Returns
    -------
    (d,) summing to 1; items that tie within 1e-9 share a draw. Monte Carlo error at most .003.
    """
    generator = np.random.default_rng(seed)
    loadings = factor(estimate.covariance)
    wins = np.zeros(estimate.value.size)
    for _ in range(DRAWS // BLOCK):
        scores = estimate.value + generator.standard_normal((BLOCK, loadings.shape[1])) @ loadings.T
        first = scores >= scores.max(axis=1, keepdims=True) - TIE
        wins += (first / first.sum(axis=1, keepdims=True)).sum(axis=0)
    return wins / DRAWS
