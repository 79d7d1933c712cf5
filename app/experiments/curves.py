"""Estimators compared on the same draws along a scale: errors, paired differences, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.experiments.runner import replicates
from app.stats.types import Floats


@dataclass(frozen=True)
class Outcome:
    """What one replicate says of one estimator.

    Parameters
    ----------
    error : mean squared error over items.
    hit : whether all intervals held the truth, None where there are none.
    """

    error: float
    hit: bool | None = None


@dataclass(frozen=True)
class Spot:
    """Where on the curves an outcome belongs.

    Parameters
    ----------
    estimand, estimator : of the curve.
    level : along the scale.
    """

    estimand: str
    estimator: str
    level: str


Outcomes = Mapping[Spot, Outcome]


@dataclass(frozen=True)
class Point:
    """An estimator at a level, over all replicates.

    Parameters
    ----------
    spot : where it belongs.
    runs : replicates.
    rmse, two_errors : root of the mean squared error, and two standard errors of it.
    hits : replicates whose intervals held the truth; None where it has no intervals.
    """

    spot: Spot
    runs: int
    rmse: float
    two_errors: float
    hits: int | None


@dataclass(frozen=True)
class Verdict:
    """A statement that the experiment puts to the test.

    Parameters
    ----------
    claim : in words.
    found : what was found, in words.
    passed : whether the claim holds.
    """

    claim: str
    found: str
    passed: bool


@dataclass(frozen=True)
class Curves:
    """All points, in the order of their levels, and what they are to show."""

    title: str
    axis: str
    points: tuple[Point, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)


class Runs:
    """The outcomes of all replicates, by spot."""

    def __init__(self, results: Sequence[Outcomes]) -> None:
        self._spots = tuple(results[0])
        self._errors = {spot: np.array([each[spot].error for each in results]) for spot in self._spots}
        self._hits = {spot: [each[spot].hit for each in results] for spot in self._spots}

    @property
    def points(self) -> tuple[Point, ...]:
        """One a spot."""
        return tuple(self._point(spot) for spot in self._spots)

    @property
    def size(self) -> int:
        """Replicates."""
        return next(iter(self._errors.values())).size

    def hits(self, spot: Spot) -> int:
        """Replicates that held the truth."""
        return sum(hit is True for hit in self._hits[spot])

    def ratio(self, spot: Spot, reference: Spot) -> tuple[float, float]:
        """Ratio of mean squared errors on the same draws, and two standard errors of it (delta method)."""
        own, other = self._errors[spot], self._errors[reference]
        ratio = float(own.mean() / other.mean())
        return ratio, 2.0 * _standard_error(own - ratio * other) / float(other.mean())

    def compare(self, claim: str, spot: Spot, reference: Spot, holds: Callable[[float, float], bool]) -> Verdict:
        """A claim on the ratio of two errors: `holds(ratio, two standard errors)`."""
        ratio, reach = self.ratio(spot, reference)
        return Verdict(claim, f"{ratio:.3f} ± {reach:.3f}", holds(ratio, reach))

    def _point(self, spot: Spot) -> Point:
        errors, hits = self._errors[spot], self._hits[spot]
        rmse = float(np.sqrt(errors.mean()))
        told = None if None in hits else self.hits(spot)
        return Point(spot, errors.size, rmse, _standard_error(errors) / rmse, told)


def _standard_error(values: Floats) -> float:
    return float(values.std() / np.sqrt(values.size))


def run(
    task: Callable[[int], Outcomes], runs: int, *, processes: int, on_done: Callable[[], None] = lambda: None
) -> Runs:
    """Replicates with seeds 0 .. runs-1.

    Parameters
    ----------
    task : picklable; the outcomes of one seed.
    runs : how many.
    processes : how many work at once; it changes no number.
    on_done : called after each replicate.
    """
    results: dict[int, Outcomes] = {}
    for seed, result in replicates(task, range(runs), processes=processes):
        results[seed] = result
        on_done()
    return Runs([results[seed] for seed in range(runs)])
