"""Coverage on a board whose pairs were chosen, labelled and learnt from, three times over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.experiments.acquisition import policies
from app.experiments.acquisition.labelling import UNIT, Site, Stage, even, steep
from app.experiments.boards import Board
from app.experiments.coverage.bars import COVERS, Bar
from app.experiments.coverage.case import ESTIMANDS, Reading, Results, Truths, read, truths_of
from app.stats.acquisition import Rules
from app.stats.gars import estimand
from app.stats.simulate import Cyclic
from app.stats.types import Votes

ROUNDS = 3
CHOSEN_FOR = estimand("bt")
"""What the policies make certain; all estimands are scored."""


@dataclass(frozen=True)
class Adaptive:
    """A uniform start and three rounds of a policy that learns from all labels before.

    Parameters
    ----------
    objective : name of the policy.
    generator : the truth.
    asked : budget and mode.
    n : contexts, as many in each round as at the start.
    learner : name of the outcome learner.
    """

    objective: str
    generator: Cyclic
    asked: Rules
    n: int
    learner: str = "davidson"
    setting: str = "rounds"

    @property
    def name(self) -> str:
        return f"{self.generator.n_items} items, {self.objective}, {self.asked.mode}"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {"logged": COVERS}

    @property
    def estimands(self) -> Sequence[str]:
        return [each.name for each in ESTIMANDS]

    def truths(self) -> Truths:
        return truths_of(self.generator)

    def replicate(self, truths: Truths, seed: int) -> Results:
        labelled = self.labelled(seed)
        reading = Reading(labelled.sample, UNIT, truths)
        return read(labelled, {"logged": reading}, probabilities=self.generator.probabilities, learner=self.learner)

    def labelled(self, seed: int) -> Board:
        """The board after all rounds."""
        site, size = Site(self.generator, self.n, seed), self.n // (ROUNDS + 1)
        stages: list[Votes] = [site.label(0, even(self.generator.n_items, self.asked, size), self.asked.mode)]
        for start in range(size, size * (ROUNDS + 1), size):
            coming = np.arange(start, start + size)
            stage = Stage.of(site, site.board(stages, start), coming, self.asked, learner=self.learner)
            propensity = policies.POLICIES[self.objective](stage, CHOSEN_FOR)
            stages.append(site.label(start, propensity, self.asked.mode))
        return site.board(stages, size * (ROUNDS + 1))


def adaptive(learner: str = "davidson") -> Iterator[Adaptive]:
    """A-optimal and contrast policies, several pairs a context and exactly one."""
    for objective in (policies.A_OPTIMAL, policies.CONTRAST):
        yield Adaptive(objective, steep(5), Rules("bernoulli", 2.8), 1200, learner)
        yield Adaptive(objective, steep(10), Rules("bernoulli", 4.0), 2000, learner)
    yield Adaptive(policies.A_OPTIMAL, steep(5), Rules("one", 1.0), 4000, learner)
    yield Adaptive(policies.A_OPTIMAL, steep(10), Rules("one", 1.0), 8000, learner)
