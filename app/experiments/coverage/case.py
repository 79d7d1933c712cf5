"""A kind of board with the rules it is read by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from app.experiments.boards import Board, cross_fit, oracle
from app.experiments.coverage.bars import Bar
from app.experiments.coverage.measure import Measured, measured
from app.stats.debias import Clustering, Pairs, Scores, estimate
from app.stats.gars import Estimand, Graph, estimand
from app.stats.simulate import Generator, truth
from app.stats.types import Floats, Sample

ESTIMANDS: tuple[Estimand, ...] = tuple(estimand(name) for name in ("borda", "bt", "rc"))
Truths = Mapping[str, Floats]
Results = dict[tuple[str, str], Measured]


class Case(Protocol):
    """One line of a setting; picklable."""

    @property
    def setting(self) -> str:
        """The name that the command line knows."""

    @property
    def name(self) -> str:
        """Which of the setting's cases."""

    @property
    def n(self) -> int:
        """Rows of a board."""

    @property
    def rules(self) -> Mapping[str, Bar]:
        """The estimator's rule and the controls that ignore it, with what is expected of each."""

    @property
    def estimands(self) -> Sequence[str]:
        """Names of what is scored."""

    def truths(self) -> Truths:
        """What takes long to compute and is the same for all replicates."""

    def replicate(self, truths: Truths, seed: int) -> Results:
        """One board: (rule, estimand) → what it says."""


@dataclass(frozen=True)
class Reading:
    """How one rule reads a board.

    Parameters
    ----------
    sample : with the propensities that the rule divides by.
    clustering : of the variance.
    truths : what the rule claims to cover.
    pairs : the mode of pairs.
    """

    sample: Sample
    clustering: Clustering
    truths: Truths
    pairs: Pairs = "all"


def read(
    board: Board,
    readings: Mapping[str, Reading],
    *,
    probabilities: Callable[[Floats], Floats],
    learner: str,
    estimands: Sequence[Estimand] = ESTIMANDS,
) -> Results:
    """Fit the board once and judge every reading; the first one's oracle is the ideal of all.

    Parameters
    ----------
    board : what the models are fitted to.
    readings : by rule, the estimator's own first.
    probabilities : the true mu (u, K, K, C) at covariates (u, d).
    learner : name of the outcome learner.
    estimands : what is scored.
    """
    mu = cross_fit(board, learner)
    first = next(iter(readings.values()))
    best = estimate(first.sample, oracle(board, probabilities), estimands, clustering=first.clustering)
    results: Results = {}
    for rule, reading in readings.items():
        fitted = estimate(reading.sample, mu, estimands, clustering=reading.clustering)
        for each in estimands:
            results[rule, each.name] = measured(
                fitted[each.name].of(reading.pairs),
                best[each.name].of(first.pairs),
                reading.truths[each.name],
                extrapolated=_extrapolated(fitted[each.name], reading.pairs),
            )
    return results


def _extrapolated(scores: Scores, pairs: Pairs) -> bool:
    return "extrapolated" in scores.statuses(pairs)


def truths_of(generator: Generator, graph: Graph | None = None, estimands: Sequence[Estimand] = ESTIMANDS) -> Truths:
    """The true scores on a graph, by default the complete one."""
    on = graph or Graph.complete(generator.n_items)
    return {each.name: truth(generator, each, on) for each in estimands}
