"""What replicates say of policies, quantity by quantity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.experiments.curves import Outcome, Runs, Spot, Verdict
from app.experiments.runner import replicates
from app.stats.types import Floats

Figures = Mapping[Spot, Mapping[str, float]]
"""A replicate: estimand, policy and board → quantities."""


@dataclass(frozen=True)
class Quantity:
    """One quantity of one policy over all replicates.

    Parameters
    ----------
    spot : estimand, policy, board.
    name : of the quantity.
    mean, two_errors : its mean, and two standard errors of it.
    ratio, ratio_errors : to the reference on the same draws, and two standard errors; None where there is none.
    """

    spot: Spot
    name: str
    mean: float
    two_errors: float
    ratio: float | None
    ratio_errors: float | None


@dataclass(frozen=True)
class Comparison:
    """All quantities, and what they are to show."""

    title: str
    reference: str
    runs: int
    quantities: tuple[Quantity, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)


class Collected:
    """The figures of all replicates."""

    def __init__(self, results: Sequence[Figures]) -> None:
        self._results = results
        self.spots = tuple(results[0])

    @property
    def size(self) -> int:
        """Replicates."""
        return len(self._results)

    def values(self, spot: Spot, quantity: str) -> Floats:
        """One a replicate."""
        return np.array([each[spot][quantity] for each in self._results])

    def ratio(self, spot: Spot, reference: Spot, quantity: str) -> tuple[float, float]:
        """Ratio of means on the same draws, and two standard errors of it."""
        return self._runs(quantity, spot, reference).ratio(spot, reference)

    def at_most(self, spots: tuple[Spot, Spot], quantity: str, limit: float) -> Verdict:
        """Whether one spot's mean is at most so many times another's."""
        spot, reference = spots
        words = f"{spot.level}, {spot.estimand}: {spot.estimator} ≤ {limit:g} × {reference.estimator} in {quantity}"
        return self._runs(quantity, *spots).compare(words, spot, reference, lambda ratio, _: ratio <= limit)

    def quantities(self, reference: str) -> Iterator[Quantity]:
        """Every quantity beside that of a policy on the same board and estimand."""
        for spot in self.spots:
            base = Spot(spot.estimand, reference, spot.level)
            for name in self._results[0][spot]:
                values = self.values(spot, name)
                comparable = name in self._results[0].get(base, {}) and self.values(base, name).any()
                ratio = self.ratio(spot, base, name) if comparable else (None, None)
                yield Quantity(
                    spot, name, float(values.mean()), 2.0 * float(values.std() / np.sqrt(values.size)), *ratio
                )

    def _runs(self, quantity: str, *spots: Spot) -> Runs:
        return Runs([{spot: Outcome(each[spot][quantity]) for spot in spots} for each in self._results])


class Part(Protocol):
    """A part of the experiment; picklable."""

    @property
    def title(self) -> str:
        """What the table shows."""

    @property
    def reference(self) -> str:
        """The policy that others are held against."""

    def replicate(self, seed: int) -> Figures:
        """One simulated site."""

    def verdicts(self, found: Collected) -> Iterator[Verdict]:
        """What the replicates are to show."""


def compare(part: Part, runs: int, *, processes: int, on_done: Callable[[], None] = lambda: None) -> Comparison:
    """Replicates with seeds 0 .. runs-1, summed up.

    Parameters
    ----------
    part : what is simulated.
    runs : how many.
    processes : how many work at once; it changes no number.
    on_done : called after each replicate.
    """
    results: dict[int, Figures] = {}
    for seed, result in replicates(part.replicate, range(runs), processes=processes):
        results[seed] = result
        on_done()
    found = Collected([results[seed] for seed in range(runs)])
    quantities = tuple(found.quantities(part.reference))
    return Comparison(part.title, part.reference, runs, quantities, tuple(part.verdicts(found)))
