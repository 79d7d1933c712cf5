"""Votes that are excluded afterwards, some pairs' more often than others'."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.experiments.boards import Board, board
from app.experiments.coverage.bars import COVERS, FAILS, Bar
from app.experiments.coverage.case import ESTIMANDS, Reading, Results, Truths, read, truths_of
from app.stats.debias import Clustering, KeptRates, Labels, corrected_for_exclusions
from app.stats.simulate import PAPER, Arena, Generator
from app.stats.types import Bools, Floats

KEPT = 0.12, 0.95
"""Chance to be kept of votes in which the first item takes part, and of all others."""


@dataclass(frozen=True)
class Exclusions:
    """Seven in eight of the votes on one item's pairs are excluded, and some of the others.

    Parameters
    ----------
    name : of the case.
    generator, n : the board and its rows.
    clustering : says whether an excluded vote takes its row along.
    learner : name of the outcome learner.
    """

    name: str
    generator: Generator
    n: int
    clustering: Clustering
    learner: str
    setting: str = "exclusions"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {"kept rates": COVERS, "exclusions ignored": FAILS}

    @property
    def estimands(self) -> Sequence[str]:
        return [each.name for each in ESTIMANDS]

    def truths(self) -> Truths:
        return truths_of(self.generator)

    def replicate(self, truths: Truths, seed: int) -> Results:
        whole = board(self.generator, self.generator.draw(self.n, seed=seed), seed=seed, clustering=self.clustering)
        kept = _kept(whole, seed=seed)
        left = whole.without(~kept)
        used = (_corrected(whole, kept, left), left.sample.votes.propensity)
        readings = {
            rule: Reading(left.with_propensities(pi), self.clustering, truths)
            for rule, pi in zip(self.rules, used, strict=True)
        }
        return read(left, readings, probabilities=self.generator.probabilities, learner=self.learner)


def _kept(on: Board, *, seed: int) -> Bools:
    votes = on.sample.votes
    first = (votes.left == 0) | (votes.right == 0)
    kept: Bools = np.random.default_rng([seed, 17]).random(len(votes)) < np.where(first, *KEPT)
    return kept


def _corrected(whole: Board, kept: Bools, left: Board) -> Floats:
    votes, after = whole.sample.votes, left.sample.votes
    rates = KeptRates.of(Labels(votes.row, votes.left, votes.right), kept, whole.sample.n_items)
    return corrected_for_exclusions(
        after.propensity, rates, left=after.left, right=after.right, unit=whole.clustering.unit
    )


def exclusions(learner: str) -> Iterator[Exclusions]:
    """On battles an excluded vote takes its offer along, on contexts it is one label less."""
    yield Exclusions("battles", Arena(5, taste=0.0), 6000, Clustering(unit="battle"), learner)
    yield Exclusions("contexts", PAPER, 2000, Clustering(unit="context"), learner)
