"""Pairs that were drawn and handed out, and are not all answered: some never, some not yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.experiments.boards import Board, board
from app.experiments.coverage.bars import COVERS, FAILS, Bar
from app.experiments.coverage.case import ESTIMANDS, Reading, Results, Truths, read, truths_of
from app.stats.debias import Clustering
from app.stats.debias.response import DrawnPairs, ResponseRates
from app.stats.debias.segments import segment
from app.stats.simulate import PAPER, Generator
from app.stats.types import Floats, Sample

UNIT = Clustering(unit="context")
HOUR = 3600.0
LEASE = HOUR
ANSWERS_WITHIN = 0.25 * HOUR
"""Mean seconds until an answer, where one comes."""


@dataclass(frozen=True)
class Leases:
    """Draws of the last 75 minutes; some are never answered, the others after 15 minutes or so.

    A draw that is not answered within an hour expires. Most are younger, so few of the unanswered ones have expired,
    and answered / (answered + expired) is far above the share that is answered.

    Parameters
    ----------
    name : of the case.
    learner : name of the outcome learner.
    youngest : hours since the latest draw.
    ever : chance of an answer in the end, of the pair that is answered most seldom and of the one most often.
    """

    name: str
    learner: str
    youngest: float
    ever: tuple[float, float]
    generator: Generator = PAPER
    n: int = 1500
    setting: str = "leases"

    @property
    def rules(self) -> Mapping[str, Bar]:
        return {"rate by age": COVERS, "answered of closed": FAILS, "non-response ignored": FAILS}

    @property
    def estimands(self) -> Sequence[str]:
        return [each.name for each in ESTIMANDS]

    def truths(self) -> Truths:
        return truths_of(self.generator)

    def replicate(self, truths: Truths, seed: int) -> Results:
        whole = board(self.generator, self.generator.draw(self.n, seed=seed), seed=seed, clustering=UNIT)
        age = np.random.default_rng([seed, 23]).uniform(self.youngest * HOUR, 1.25 * HOUR, self.n)
        draws = self._draws(whole, age, seed=seed)
        left = whole.without(~draws.answered)
        closed = draws.answered | (draws.age >= LEASE)
        votes = left.sample.votes
        readings = {
            "rate by age": Reading(_by_age(left, draws, age), UNIT, truths),
            "answered of closed": Reading(
                left.with_propensities(votes.propensity * draws.answered.sum() / closed.sum()), UNIT, truths
            ),
            "non-response ignored": Reading(left.sample, UNIT, truths),
        }
        return read(left, readings, probabilities=self.generator.probabilities, learner=self.learner)

    def _draws(self, on: Board, age: Floats, *, seed: int) -> DrawnPairs:
        """All pairs of a context are drawn at once; each is answered on its own, or never."""
        generator, votes, size = np.random.default_rng([seed, 19]), on.sample.votes, on.sample.n_items
        ever = np.linspace(*self.ever, size * size)[votes.left * size + votes.right]
        waits = generator.exponential(ANSWERS_WITHIN, len(votes))
        answered = (generator.random(len(votes)) < ever) & (waits <= age[votes.row])
        return DrawnPairs(votes.left, votes.right, age[votes.row], answered)


def _by_age(left: Board, draws: DrawnPairs, age: Floats) -> Sample:
    """The rows old enough for an answer (age of all: (n,)), with the chance of one in the propensities."""
    votes, rates = left.sample.votes, ResponseRates.of(draws, left.sample.n_items)
    used = votes.propensity * rates.rate(votes.left, votes.right, age[votes.row])
    return segment(left.sample, ~rates.too_young(age), propensity=used)


def leases(learner: str) -> Iterator[Leases]:
    """Draws of all ages; and others that are younger still, of pairs that are answered much more often than others."""
    yield Leases("drawn within 75 min", learner, youngest=0.1, ever=(0.5, 0.9))
    yield Leases("some pairs seldom", learner, youngest=0.0, ever=(0.25, 1.0))
