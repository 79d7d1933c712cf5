"""What one replicate says of one estimand under one rule."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.experiments.coverage.bars import LEVEL
from app.stats.debias import OneStep
from app.stats.inference import IntervalKind, bands, select
from app.stats.types import Estimate, Floats


@dataclass(frozen=True)
class Measured:
    """One replicate.

    Parameters
    ----------
    hit, plug_in_hit : whether every item's interval holds the truth; the plug-in's taken as wide.
    width, oracle_width : mean interval width over items.
    error, plug_in_error, oracle_error : mean squared error over items.
    extrapolated : whether an item's score is marked as resting on pairs without votes.
    drift : (K,) how far live scores are from those of a refit of the same rows; empty where nothing is live.
    """

    hit: bool
    plug_in_hit: bool
    width: float
    oracle_width: float
    error: float
    plug_in_error: float
    oracle_error: float
    extrapolated: bool = False
    drift: tuple[float, ...] = ()


def measured(
    fitted: OneStep, ideal: OneStep, true: Floats, *, kind: IntervalKind = "simultaneous", extrapolated: bool = False
) -> Measured:
    """Compare an estimate with the truth.

    Parameters
    ----------
    fitted : with estimated nuisances.
    ideal : with the true ones, on the same draws.
    true : (K,) scores of all items, NaN where one is not to be compared; nor are those without an estimate.
    kind : of the intervals.
    extrapolated : noted as it is.
    """
    compared = np.isfinite(true[fitted.items])
    debiased, plug_in = select(fitted.estimate, compared), fitted.plug_in[compared]
    best = select(ideal.estimate, np.isfinite(true[ideal.items]))
    known, half = true[fitted.items][compared], half_width(debiased, kind)
    return Measured(
        hit=bool((np.abs(debiased.value - known) <= half).all()),
        plug_in_hit=bool((np.abs(plug_in - known) <= half).all()),
        width=float(2 * half.mean()),
        oracle_width=float(2 * half_width(best, kind).mean()),
        error=mean_square(debiased.value - known),
        plug_in_error=mean_square(plug_in - known),
        oracle_error=mean_square(best.value - true[ideal.items][np.isfinite(true[ideal.items])]),
        extrapolated=extrapolated,
    )


def half_width(estimate: Estimate, kind: IntervalKind = "simultaneous") -> Floats:
    """(d,) half the length of each interval."""
    band = bands(estimate, kind=kind, level=LEVEL)
    half: Floats = (band.upper - band.lower) / 2
    return half


def mean_square(error: Floats) -> float:
    """Mean over items of the squared error."""
    return float((error**2).mean())
