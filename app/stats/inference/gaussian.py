"""Normal vectors of a given covariance, singular ones included."""

from __future__ import annotations

import numpy as np

from app.stats.types import Floats

# Eigenvalues below this share of the largest one are rounding, not directions.
RANK_TOLERANCE = 1e-11


def factor(covariance: Floats) -> Floats:
    """L (d, r) with L Lᵀ = covariance, r its numerical rank; negative eigenvalues count as 0.

    Parameters
    ----------
    covariance : (d, d) symmetric.
    """
    # Factored in an order of the coordinates that does not depend on their labels, seeded draws permute with them.
    order = np.argsort((covariance**2).sum(axis=1), kind="stable")
    values, vectors = np.linalg.eigh(covariance[np.ix_(order, order)])
    kept = values > RANK_TOLERANCE * max(float(values.max(initial=0.0)), 0.0)
    loadings = np.empty((order.size, int(kept.sum())))
    loadings[order] = vectors[:, kept] * np.sqrt(values[kept])
    return loadings


def directions(size: int, rank: int, *, seed: int) -> Floats:
    """(size, rank) points drawn uniformly from the unit sphere."""
    draws = np.random.default_rng(seed).standard_normal((size, rank))
    draws /= np.linalg.norm(draws, axis=1, keepdims=True)
    return draws
