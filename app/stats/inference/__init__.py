"""Inference from an estimate alone: intervals, regions, differences, ranks, chances of being best, other scales."""

from app.stats.inference.bands import Bands, IntervalKind, bands, sidak
from app.stats.inference.best import probability_best, probability_top
from app.stats.inference.change import Change, change
from app.stats.inference.ellipsoid import Ellipsoid, EqualityTest, ellipsoid, equality_test
from app.stats.inference.ranks import (
    Differences,
    differences,
    open_neighbours,
    rank_intervals,
    ranks,
    surely_better,
)
from app.stats.inference.scales import against, elo, select

__all__ = [
    "Bands",
    "Change",
    "Differences",
    "Ellipsoid",
    "EqualityTest",
    "IntervalKind",
    "against",
    "bands",
    "change",
    "differences",
    "ellipsoid",
    "elo",
    "equality_test",
    "open_neighbours",
    "probability_best",
    "probability_top",
    "rank_intervals",
    "ranks",
    "select",
    "sidak",
    "surely_better",
]
