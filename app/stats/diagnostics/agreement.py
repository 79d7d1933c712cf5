"""How two rankings of the same items differ."""

from __future__ import annotations

import numpy as np
from scipy.stats import kendalltau

from app.stats.inference.ranks import TIE, ranks
from app.stats.types import Floats, Ints


def rank_changes(before: Floats, after: Floats) -> Ints:
    """(d,) rank by the scores `after` less that by the scores `before`; positive where an item falls."""
    return ranks(after) - ranks(before)


def kendall(before: Floats, after: Floats) -> float | None:
    """Kendall's τ-b of two lists of scores (d,), differences below 1e-9 counted as ties; None where one is constant.

    Parameters
    ----------
    before, after : (d,) scores.
    """
    if min(np.ptp(before), np.ptp(after)) <= TIE:
        return None
    return float(kendalltau(ranks(before), ranks(after)).statistic)
