"""Inference from an estimate alone: intervals, ranks, the chance of being best, other scales."""

from app.stats.inference.bands import Bands, IntervalKind, bands
from app.stats.inference.best import probability_best
from app.stats.inference.ranks import rank_intervals, ranks, surely_better
from app.stats.inference.scales import against, elo, select

__all__ = [
    "Bands",
    "IntervalKind",
    "against",
    "bands",
    "elo",
    "probability_best",
    "rank_intervals",
    "ranks",
    "select",
    "surely_better",
]
