"""How likely each item is the best, or among the best."""

from __future__ import annotations

import numpy as np

from app.stats.inference.gaussian import factor
from app.stats.inference.ranks import TIE
from app.stats.types import Estimate, Floats

DRAWS = 2**15
BLOCK = 2**12


def probability_best(estimate: Estimate, *, seed: int = 0) -> Floats:
    """Share of draws of N(value, covariance) in which each item has the largest score: (d,) summing to 1.

    See `probability_top`.
    """
    return probability_top(estimate, 1, seed=seed)


def probability_top(estimate: Estimate, size: int, *, seed: int = 0) -> Floats:
    """Share of draws of N(value, covariance) in which each item is among the `size` largest.

    Parameters
    ----------
    estimate : d scores and their covariance.
    size : k, at least 1; from d on every item is in.
    seed : of the draws; equal seeds give equal answers.

    Returns
    -------
    (d,) summing to min(k, d); items that tie within 1e-9 for the last places share these. Monte Carlo error at most
    .003.
    """
    if size >= estimate.value.size:
        return np.ones(estimate.value.size)
    generator = np.random.default_rng(seed)
    loadings = factor(estimate.covariance)
    within = np.zeros(estimate.value.size)
    for _ in range(DRAWS // BLOCK):
        scores = estimate.value + generator.standard_normal((BLOCK, loadings.shape[1])) @ loadings.T
        within += _places(scores, size).sum(axis=0)
    return within / DRAWS


def _places(scores: Floats, size: int) -> Floats:
    """(b, d) share of the first `size` places that each item holds in each draw."""
    last = np.partition(scores, -size, axis=1)[:, [-size]]
    above = scores > last + TIE
    tied = np.abs(scores - last) <= TIE
    left = (size - above.sum(axis=1)) / tied.sum(axis=1)
    places: Floats = above + tied * left[:, None]
    return places
