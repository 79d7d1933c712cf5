"""Boards that are read as they were drawn: Table 1, and one ordered pair an offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.experiments.boards import board
from app.experiments.coverage.bars import COVERS, Bar
from app.experiments.coverage.case import ESTIMANDS, Reading, Results, Truths, read, truths_of
from app.stats.debias import Clustering
from app.stats.simulate import ARENA, PAPER, Arena, Generator

SIZES = (1000, 2000, 3000)
LEARNT = Bar("shown", ideal=False, below_plug_in=True)
"""Of learners that are farther from the truth: debiasing must help."""


@dataclass(frozen=True)
class Plain:
    """Logged propensities, no clusters.

    Parameters
    ----------
    setting, name : what it is called.
    generator : the board.
    n : its rows.
    clustering : says what a row is.
    bar : what is expected.
    learner : name of the outcome learner.
    """

    setting: str
    name: str
    generator: Generator
    n: int
    clustering: Clustering
    bar: Bar = COVERS
    learner: str = "davidson"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {"debiased": self.bar}

    @property
    def estimands(self) -> Sequence[str]:
        return [each.name for each in ESTIMANDS]

    def truths(self) -> Truths:
        return truths_of(self.generator)

    def replicate(self, truths: Truths, seed: int) -> Results:
        draws = self.generator.draw(self.n, seed=seed)
        drawn = board(self.generator, draws, seed=seed, clustering=self.clustering)
        # Every pair can be drawn, whether or not it has votes already.
        possible = ~np.eye(self.generator.n_items, dtype=np.bool_)
        reading = Reading(replace(drawn.sample, possible=possible), self.clustering, truths)
        return read(drawn, {"debiased": reading}, probabilities=self.generator.probabilities, learner=self.learner)


def table1(learner: str, sizes: Sequence[int] = ()) -> Iterator[Plain]:
    """The paper's Table 1: contexts with about 2.8 labels each.

    With `davidson` every bar holds; of other learners the debiased error must be below their own plug-in's.
    """
    bar = COVERS if learner == "davidson" else LEARNT
    for n in sizes or SIZES:
        yield Plain("table1", learner, PAPER, n, Clustering(unit="context"), bar, learner)


def single_pair(learner: str) -> Iterator[Plain]:
    """One ordered pair an offer, few votes a pair."""
    boards = (
        ("10 items", Arena(10, taste=0.0), 8000),
        ("40 items", Arena(40, taste=0.0), 4000),
        ("arena", ARENA, 6000),
    )
    for name, generator, n in boards:
        yield Plain("single-pair", name, generator, n, Clustering(unit="battle"), learner=learner)
