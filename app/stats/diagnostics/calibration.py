"""Are the model's probabilities frequencies? Predictions in bins against what happened."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtrc

from app.stats.types import Bools, Floats

BINS = 10
LEAST_IN_BIN = 5.0
"""Expected cases and expected non-cases from which a bin's sum is near enough to normal for the test."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Bins of a predicted probability with equally many votes each (arrays of length b), and a test of all of them.

    Parameters
    ----------
    predicted, observed : mean prediction and observed frequency.
    standard_error : of the observed frequency where the predictions hold and votes are independent.
    count : votes.
    expected_error : Σ count |observed - predicted| / Σ count (the expected calibration error).
    chi_square, degrees, p_value : Σ ((observed - predicted) / standard error)² over bins with at least 5 expected cases
        and 5 expected non-cases, their number, and its chance where the predictions hold; None without such a bin.
    """

    predicted: Floats
    observed: Floats
    standard_error: Floats
    count: Floats
    expected_error: float
    chi_square: float | None
    degrees: int
    p_value: float | None


def calibrate(predicted: Floats, happened: Bools) -> Calibration:
    """Compare predictions made without the votes with the votes.

    Parameters
    ----------
    predicted : (m,) probabilities, m >= 1.
    happened : (m,) whether the event came.
    """
    place = _bins(predicted)
    count = np.bincount(place).astype(np.float64)
    mean = np.bincount(place, weights=predicted) / count
    frequency = np.bincount(place, weights=happened) / count
    variance = np.bincount(place, weights=predicted * (1.0 - predicted))
    enough = np.minimum(mean, 1.0 - mean) * count >= LEAST_IN_BIN
    gap = (frequency - mean) * count
    statistic = float((gap[enough] ** 2 / variance[enough]).sum()) if enough.any() else None
    return Calibration(
        predicted=mean,
        observed=frequency,
        standard_error=np.sqrt(variance) / count,
        count=count,
        expected_error=float(np.abs(gap).sum() / count.sum()),
        chi_square=statistic,
        degrees=int(enough.sum()),
        p_value=None if statistic is None else float(chdtrc(int(enough.sum()), statistic)),
    )


def _bins(predicted: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Dense bin of each prediction, cut at quantiles; equal predictions share one."""
    edges = np.unique(np.quantile(predicted, np.linspace(0.0, 1.0, BINS + 1)[1:-1]))
    place = np.searchsorted(edges, predicted, side="left")
    return (np.cumsum(np.bincount(place) > 0) - 1)[place].astype(np.int64)
