"""Projection onto the probability simplex: the best reply under an L2 regulariser, and the sparsemax link."""

from __future__ import annotations

import numpy as np

from app.stats.types import Floats


def project(scores: Floats) -> Floats:
    """Euclidean projection of each row onto the simplex (Held, Wolfe, Crowder 1974; sparsemax, arXiv 1602.02068).

    Parameters
    ----------
    scores : (n, K).

    Returns
    -------
    (n, K), rows >= 0 that sum to 1.
    """
    size = scores.shape[1]
    ordered = -np.sort(-scores, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1.0
    count = np.arange(1, size + 1)
    support = (ordered * count > excess).sum(axis=1)
    threshold = excess[np.arange(len(scores)), support - 1] / support
    projected: Floats = np.maximum(scores - threshold[:, None], 0.0)
    return projected
