"""Rows that depend on each other: through a voter, or through a prompt that is asked again and again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.experiments.boards import board
from app.experiments.coverage.bars import COVERS, Bar, at_least, below
from app.experiments.coverage.case import ESTIMANDS, Reading, Results, Truths, read, truths_of
from app.stats.debias import Clustering
from app.stats.gars import Graph
from app.stats.simulate import VOTERS, Arena, Draws, Shown, Strength
from app.stats.types import Floats, Sample

BY_VOTER, BY_CONTEXT = Clustering("voter", "battle"), Clustering("context", "battle")
FIXED = Clustering("context", "battle", fixed=True)


@dataclass(frozen=True)
class Voters:
    """100 voters with tastes of their own, of whom a few cast most votes."""

    learner: str
    generator: Arena = VOTERS
    n: int = 8000
    setting: str = "voters"
    name: str = "100 voters"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {"clustered by voter": at_least(0.90), "unclustered": below(0.80)}

    @property
    def estimands(self) -> Sequence[str]:
        return [each.name for each in ESTIMANDS]

    def truths(self) -> Truths:
        return truths_of(self.generator)

    def replicate(self, truths: Truths, seed: int) -> Results:
        draws = self.generator.draw(self.n, seed=seed)
        drawn = board(self.generator, draws, seed=seed, clustering=BY_VOTER)
        readings = {
            rule: Reading(drawn.sample, clustering, truths)
            for rule, clustering in zip(self.rules, (BY_VOTER, BY_CONTEXT), strict=True)
        }
        return read(drawn, readings, probabilities=self.generator.probabilities, learner=self.learner)


PROMPTS = 13
# Prompts matter, yet less than the noise of their votes: the point where ignoring them is tempting and wrong.
MILD = Arena(5, taste=0.0, strength=Strength(slope=0.4, curve=0.15, cycle=0.3))


@dataclass(frozen=True)
class Prompts(ABC):
    """13 prompts, each asked hundreds of times: new for every board, so that both populations have a truth."""

    learner: str
    generator: Arena = MILD
    n: int = 4000
    setting: str = "fixed-contexts"

    @property
    def estimands(self) -> Sequence[str]:
        return [each.name for each in ESTIMANDS]

    def replicate(self, truths: Truths, seed: int) -> Results:
        generator = np.random.default_rng([seed, 13])
        asked = self.generator.covariates(generator.random((PROMPTS, self.generator.n_covariates)))
        prompt = generator.integers(PROMPTS, size=self.n)
        shown = Shown(~np.eye(self.generator.n_items, dtype=np.bool_)[None], np.zeros(self.n, dtype=np.int64))
        votes = self.generator.draw_among(shown, seed=seed, x=asked[prompt]).votes
        drawn = board(self.generator, Draws(asked, votes), seed=seed, clustering=BY_CONTEXT, context=prompt)
        readings = self.readings(drawn.sample, asked, truths)
        return read(drawn, readings, probabilities=self.generator.probabilities, learner=self.learner)

    @abstractmethod
    def readings(self, sample: Sample, asked: Floats, truths: Truths) -> dict[str, Reading]:
        """The rules by name; `asked` (13, d) are the prompts."""


@dataclass(frozen=True)
class TheirPrompts(Prompts):
    """`population: fixed` speaks of the board's own prompts."""

    name: str = "these 13 prompts"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {"fixed": COVERS}

    def truths(self) -> Truths:
        """None in advance."""
        return {}

    def readings(self, sample: Sample, asked: Floats, truths: Truths) -> dict[str, Reading]:  # noqa: ARG002
        scores = self.generator.rule.scores(self.generator.probabilities(asked))
        graph = Graph.complete(self.generator.n_items)
        own = {each.name: each.value(scores, graph).mean(axis=0) for each in ESTIMANDS}
        return {"fixed": Reading(sample, FIXED, own)}


@dataclass(frozen=True)
class AllPrompts(Prompts):
    """`population: prompts` speaks of all that might have been asked; 13 clusters tell their own variance roughly."""

    name: str = "all prompts"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {"clustered by context": at_least(0.85), "unclustered": below(0.80)}

    def truths(self) -> Truths:
        return truths_of(self.generator)

    def readings(self, sample: Sample, asked: Floats, truths: Truths) -> dict[str, Reading]:  # noqa: ARG002
        return {
            "clustered by context": Reading(sample, BY_CONTEXT, truths),
            "unclustered": Reading(sample, FIXED, truths),
        }


def voters(learner: str) -> Iterator[Voters]:
    """Heterogeneous voters."""
    yield Voters(learner)


def fixed_contexts(learner: str) -> Iterator[TheirPrompts | AllPrompts]:
    """A handful of prompts, read as the population and as a sample of it."""
    yield TheirPrompts(learner)
    yield AllPrompts(learner)
