"""Pairs that were drawn and handed out, and are not all answered: some never, some not yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.experiments.boards import Board, board
from app.experiments.coverage.bars import COVERS, FAILS, Bar
from app.experiments.coverage.case import ESTIMANDS, Reading, Results, Truths, read, truths_of
from app.stats.debias import Clustering
from app.stats.debias.response import DrawTimes, ResponseRates
from app.stats.simulate import PAPER, Generator
from app.stats.types import Floats

UNIT = Clustering(unit="context")
HOUR = 3600.0
AGES = 0.1 * HOUR, 1.25 * HOUR
LEASE = HOUR
ANSWERS_WITHIN = 0.25 * HOUR
"""Mean seconds until an answer, where one comes."""
EVER = 0.5, 0.9
"""The pair that is answered most seldom, and most often."""


@dataclass(frozen=True)
class Leases:
    """Draws of the last 75 minutes; between 50% and 90% of a pair's draws are ever answered, after 15 minutes or so.

    A draw that is not answered within an hour expires. Most are younger, so few of the unanswered ones have expired,
    and answered / (answered + expired) is far above the share that is answered.
    """

    learner: str
    generator: Generator = PAPER
    n: int = 1500
    setting: str = "leases"
    name: str = "drawn within 75 min"

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
        times = _times(whole, seed=seed)
        late = times.answered_after > times.drawn_for
        left = whole.without(late)
        votes, age = left.sample.votes, times.drawn_for[~late]
        closed = ~late | (times.drawn_for >= LEASE)
        rates: tuple[Floats, ...] = (
            ResponseRates.of(times, self.generator.n_items).rate(votes.left, votes.right, age),
            np.full(len(votes), (~late).sum() / closed.sum()),
            np.ones(len(votes)),
        )
        readings = {
            rule: Reading(left.with_propensities(votes.propensity * rate), UNIT, truths)
            for rule, rate in zip(self.rules, rates, strict=True)
        }
        return read(left, readings, probabilities=self.generator.probabilities, learner=self.learner)


def _times(on: Board, *, seed: int) -> DrawTimes:
    """All pairs of a context are drawn at once; each is answered on its own, or never."""
    generator, votes, size = np.random.default_rng([seed, 19]), on.sample.votes, on.sample.n_items
    age = generator.uniform(*AGES, on.sample.n_rows)[votes.row]
    ever = np.linspace(*EVER, size * size)[votes.left * size + votes.right]
    after = generator.exponential(ANSWERS_WITHIN, len(votes))
    answered = np.where(generator.random(len(votes)) < ever, after, np.inf)
    return DrawTimes(votes.left, votes.right, age, answered)


def leases(learner: str) -> Iterator[Leases]:
    """Draws of all ages."""
    yield Leases(learner)
