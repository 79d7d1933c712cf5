"""Votes on a benchmark's scores, drawn with propensities of our own: all answers are known, so the truth is exact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from app.experiments.boards import board
from app.experiments.coverage.bars import COVERS, COVERS_ALONE, Bar
from app.experiments.coverage.case import ESTIMANDS, Reading, Results, Truths, read
from app.experiments.scores import ScoreTable
from app.stats.debias import Clustering
from app.stats.gars import Borda, Estimand, Graph
from app.stats.simulate import Draws, Scored
from app.stats.types import Floats

UNIT = Clustering(unit="battle")
LEARNERS = ("davidson", "lightgbm")


@dataclass(frozen=True)
class OnScores:
    """A board whose contexts are described by their task: mu(task) is a mean over the task's questions.

    Parameters
    ----------
    table : the scores.
    learner : name of the outcome learner.
    n : offers, each a question drawn with replacement and an ordered pair.
    """

    table: ScoreTable
    learner: str
    n: int = 4000
    setting: str = "scores"

    @property
    def name(self) -> str:
        return f"tasks, {self.learner}"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {"debiased": COVERS if self.learner == "davidson" else COVERS_ALONE}

    @property
    def scored(self) -> Sequence[Estimand]:
        return ESTIMANDS

    @property
    def estimands(self) -> Sequence[str]:
        return [each.name for each in self.scored]

    @cached_property
    def generator(self) -> Scored:
        """The population of questions."""
        return Scored(self.table.scores, self.table.task)

    def truths(self) -> Truths:
        graph = Graph.complete(self.generator.n_items)
        return {each.name: self.generator.truth(each, graph) for each in self.scored}

    def replicate(self, truths: Truths, seed: int) -> Results:
        draws = self.generator.draw(self.n, seed=seed)
        described = Draws(self.covariates(draws.x, seed), draws.votes)
        drawn = board(self.generator, described, seed=seed, clustering=UNIT)
        possible = ~np.eye(self.generator.n_items, dtype=np.bool_)
        reading = Reading(replace(drawn.sample, possible=possible), UNIT, truths)
        return read(
            drawn, {"debiased": reading}, probabilities=self._by_task, learner=self.learner, estimands=self.scored
        )

    def covariates(self, tasks: Floats, seed: int) -> Floats:  # noqa: ARG002
        """What the learner sees of each row, the task (n, G) first."""
        return tasks

    def _by_task(self, x: Floats) -> Floats:
        task = x[:, : self.generator.group_share.size].argmax(axis=1)
        mu: Floats = self.generator.group_mu[task]
        return mu


@dataclass(frozen=True)
class Described(OnScores):
    """The same with the questions' own features. Nobody knows mu of them, yet Borda's truth does not depend on it.

    Borda is linear in mu, so its mean is the same whatever a context is described by; the ideal is still the one that
    knows mu of every task.
    """

    @property
    def name(self) -> str:
        return f"features, {self.learner}"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {"debiased": COVERS_ALONE}

    @property
    def scored(self) -> Sequence[Estimand]:
        return (Borda(),)

    def covariates(self, tasks: Floats, seed: int) -> Floats:
        """The task and the question's features."""
        return np.hstack([tasks, self.table.features[self.generator.questions(self.n, seed=seed)]])


def on_scores(table: ScoreTable) -> Iterator[OnScores]:
    """Both learners; once more with features where the table has them."""
    for learner in LEARNERS:
        yield OnScores(table, learner)
        if table.features.shape[1]:
            yield Described(table, learner)
