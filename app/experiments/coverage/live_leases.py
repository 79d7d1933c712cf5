"""Pairs that were drawn before and after a refit, and are answered in between, late or never."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.experiments.boards import Board, board, cross_fit, oracle
from app.experiments.coverage.bars import COVERS_ALONE, FAILS, Bar
from app.experiments.coverage.case import Results, Truths, truths_of
from app.experiments.coverage.leases import HOUR, UNIT
from app.experiments.coverage.live import shrunken
from app.experiments.coverage.measure import measured
from app.stats.debias import CrossFit, OneStep, estimate
from app.stats.debias.live import Heard, LiveSums, live_sums, parts_behind
from app.stats.debias.response import DrawnPairs, ResponseRates
from app.stats.debias.segments import segment
from app.stats.gars import Estimand, estimand
from app.stats.simulate import PAPER, Generator
from app.stats.types import Bools, Floats, Sample

EVER = (0.5, 0.9)
"""Chance of an answer in the end, of the pair that is answered most seldom and of the one most often."""
WAITS = (0.25 * HOUR, 0.75 * HOUR)
"""Mean seconds until an answer, where one comes: to a draw from before the refit, and to a later one."""
LASTS = 4 * HOUR
IGNORED, AGED = "2 x, non-response ignored", "2 x, ages of the refit"


@dataclass(frozen=True)
class LiveLeases:
    """Contexts are offered one after the other, and the board is refitted when half of them have been.

    Afterwards annotators are slower. `1.5 x` and `2 x` are live scores at so many rows. The controls take what was
    answered for all that was drawn, and the chances of an answer by a draw's age for what they were before the refit.
    """

    name: str
    scores: tuple[str, ...]
    rules: Mapping[str, Bar]
    learner: str
    shrunk: bool = False
    generator: Generator = PAPER
    n: int = 4000
    setting: str = "live-leases"

    @property
    def estimands(self) -> Sequence[str]:
        return self.scores

    def truths(self) -> Truths:
        return truths_of(self.generator, estimands=[estimand(name) for name in self.scores])

    def replicate(self, truths: Truths, seed: int) -> Results:
        whole = board(self.generator, self.generator.draw(self.n, seed=seed), seed=seed, clustering=UNIT)
        world = _World.of(whole, seed=seed)
        before = replace(whole, sample=world.before())
        fitted, best = cross_fit(before, self.learner), oracle(whole, self.generator.probabilities)
        mu = shrunken(fitted) if self.shrunk else fitted
        results: Results = {}
        for each in (estimand(name) for name in self.scores):
            known = _one(before.sample, mu, each)
            for rule, share in (("1.5 x", 0.75), ("2 x", 1.0)):
                found, ideal = world.live(share, known, mu), _one(world.refitted(share), best, each)
                results[rule, each.name] = measured(found[0], ideal, truths[each.name])
            if IGNORED in self.rules:
                results[IGNORED, each.name] = measured(found[1], ideal, truths[each.name])
                results[AGED, each.name] = measured(_one(world.aged(), mu, each), ideal, truths[each.name])
        return results


@dataclass(frozen=True)
class _World:
    """Draws with their answers, and what the refit makes of those that it knows.

    Parameters
    ----------
    whole : every draw, as if all were answered.
    made, heard : seconds of each row's draws (n,) and of each answer (m,), infinite without one.
    rates, settled : of the refit, and the rows (n,) that it had.
    """

    whole: Board
    made: Floats
    heard: Floats
    rates: ResponseRates
    settled: Bools

    @classmethod
    def of(cls, whole: Board, *, seed: int) -> _World:
        generator, votes, size = np.random.default_rng([seed, 29]), whole.sample.votes, whole.sample.n_items
        made = LASTS * (np.arange(whole.sample.n_rows) + 0.5) / whole.sample.n_rows
        ever = np.linspace(*EVER, size * size)[votes.left * size + votes.right]
        waits = generator.exponential(np.where(made[votes.row] < LASTS / 2, *WAITS))
        heard = np.where(generator.random(len(votes)) < ever, made[votes.row] + waits, np.inf)
        age = LASTS / 2 - made
        rates = _rates(whole, age, heard <= LASTS / 2)
        return cls(whole, made, heard, rates, (age > 0) & ~rates.too_young(age))

    def before(self) -> Sample:
        """What the refit had."""
        return self._answered(LASTS / 2, self.settled, self._rate(LASTS / 2))

    def refitted(self, share: float) -> Sample:
        """What a refit has when a share of all was drawn."""
        now = share * LASTS
        return replace(self, rates=_rates(self.whole, now - self.made, self.heard <= now)).aged(now)

    def aged(self, now: float = LASTS) -> Sample:
        """The rows that are old enough by the curve, with its chances at their ages."""
        age = now - self.made
        return self._answered(now, (age > 0) & ~self.rates.too_young(age), self._rate(now))

    def at(self, share: float, chance: Floats) -> Sample:
        """The rows when a share of all was drawn; later answers count by their pair's chance."""
        early = self.heard <= LASTS / 2
        rate = np.where(early, self._rate(LASTS / 2), chance)
        return self._answered(share * LASTS, self.made < share * LASTS, rate)

    def live(self, share: float, known: OneStep, mu: CrossFit) -> tuple[OneStep, OneStep]:
        """The refitted score with what came since, and without regard to answers still out."""
        before, target = self.before(), {"": known.target}
        apart = parts_behind(before, mu, target, {"": known.estimate}, UNIT)[""]
        now = (self.at(share, chance) for chance in (self._oldest, np.ones_like(self.heard)))
        old, *new = (live_sums(sample, mu, target, apart=True)[""] for sample in (before, *now))
        sums = (LiveSums.none(known.items.size, apart) + each - old for each in new)
        both = zip(sums, (self._counts(share), None), strict=True)
        found = (each.estimate(known.estimate, heard) for each, heard in both)
        counted, ignored = (replace(known, estimate=each) for each in found)
        return counted, ignored

    def _counts(self, share: float) -> Heard:
        row, now = self.whole.sample.votes.row, share * LASTS
        drawn, settled = self.made < now, self.settled[self.whole.sample.votes.row]
        answers = ((self.heard <= now) & (self.heard > LASTS / 2) & drawn[row]) / self._oldest
        return Heard(
            offers=float((drawn & ~self.settled).sum()),
            pairs=float((drawn[row] & ~settled).sum()),
            answers=float(answers[~settled].sum()),
            late=float(answers[settled].sum() * self.settled.sum() / settled.sum()),
        )

    def _answered(self, now: float, rows: Bools, rate: Floats) -> Sample:
        """Some rows with the answers by a time, and their chances."""
        there = self.whole.without(self.heard > now).sample
        used = there.votes.propensity * rate[self.heard <= now]
        return segment(there, rows, propensity=used)

    def _rate(self, now: float) -> Floats:
        votes = self.whole.sample.votes
        rate = self.rates.rate(votes.left, votes.right, now - self.made[votes.row])
        # Whatever is too young stands nowhere, and must only be valid.
        return np.where(rate > 0, rate, 1.0)

    @property
    def _oldest(self) -> Floats:
        votes = self.whole.sample.votes
        return self.rates.oldest(votes.left, votes.right)


def _rates(whole: Board, age: Floats, answered: Bools) -> ResponseRates:
    """Of the draws that there are, by the ages of rows (n,), from whether each is answered (m,)."""
    votes = whole.sample.votes
    drawn = age[votes.row] > 0
    votes = votes.take(drawn)
    return ResponseRates.of(DrawnPairs(votes.left, votes.right, age[votes.row], answered[drawn]), whole.sample.n_items)


def _one(sample: Sample, mu: CrossFit, score: Estimand) -> OneStep:
    return estimate(sample, mu, [score], clustering=UNIT)[score.name].every


def live_leases(learner: str) -> Iterator[LiveLeases]:
    """The service's rule; and models that are much too flat, with what fails there."""
    rules = {"1.5 x": COVERS_ALONE, "2 x": COVERS_ALONE}
    yield LiveLeases("answers to draws", ("borda", "bt"), rules, learner)
    failing = {IGNORED: FAILS, AGED: FAILS}
    yield LiveLeases("flat models, linear score", ("borda",), {**rules, **failing}, learner, shrunk=True)
