"""Linear views of an estimate: chosen items, contrasts against an anchor, the Elo scale."""

from __future__ import annotations

import numpy as np

from app.stats.types import Bools, Estimate, Ints

ELO_SLOPE = 400.0 / np.log(10.0)
ELO_CENTRE = 1000.0


def select(estimate: Estimate, items: Ints | Bools) -> Estimate:
    """The scores of some items (positions or a mask)."""
    chosen = np.arange(estimate.value.size)[items]
    return Estimate(estimate.value[chosen], estimate.covariance[np.ix_(chosen, chosen)], estimate.n_rows)


def against(estimate: Estimate, anchor: int) -> Estimate:
    """score_j - score_anchor with the covariance of these differences; the anchor itself is 0 without error."""
    covariance = estimate.covariance - estimate.covariance[anchor]
    covariance = covariance - covariance[:, [anchor]]
    return Estimate(estimate.value - estimate.value[anchor], covariance, estimate.n_rows)


def elo(estimate: Estimate) -> Estimate:
    """Log-odds on the Elo scale: 400 / ln 10 · r + 1000."""
    return Estimate(ELO_SLOPE * estimate.value + ELO_CENTRE, ELO_SLOPE**2 * estimate.covariance, estimate.n_rows)
