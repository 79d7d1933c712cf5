"""Rows that came in after a refit, scored with its models and added to its sums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.experiments.boards import Board, board, cross_fit, oracle
from app.experiments.coverage.bars import COVERS_ALONE, FAILS, Bar
from app.experiments.coverage.case import Results, Truths, truths_of
from app.experiments.coverage.live_judges import asked, asked_what_is_shown
from app.experiments.coverage.measure import Measured, measured
from app.stats.debias import Clustering, CrossFit, OneStep, estimate
from app.stats.debias.live import live_sums
from app.stats.debias.segments import segment
from app.stats.gars import Estimand, estimand
from app.stats.simulate import PAPER, Generator
from app.stats.types import Covariates, Floats, Ints

UNIT = Clustering(unit="context")
ROWS = 4000
"""Half of them are refitted."""
JUDGED_ROWS = 2000
Judged = Callable[[Generator, Board, int], Covariates]


@dataclass(frozen=True)
class Live:
    """A board of 2,000 rows is refitted; as many come after it.

    `refit` is what a refit of all rows says, beside it the live scores at half as many rows more, the most that there
    are before the next refit, and at as many, with their drift from a refit of the same rows. With models shrunk
    halfway to even chances what their error adds to scores that bend stays as it is while intervals close in. With
    `judged` models know what it says of a board's contexts in place of their features.
    """

    name: str
    scores: tuple[str, ...]
    rules: Mapping[str, Bar]
    learner: str
    shrunk: bool = False
    judged: Judged | None = None
    generator: Generator = PAPER
    n: int = ROWS
    setting: str = "live"

    @property
    def estimands(self) -> Sequence[str]:
        return self.scores

    def truths(self) -> Truths:
        return truths_of(self.generator, estimands=[estimand(name) for name in self.scores])

    def replicate(self, truths: Truths, seed: int) -> Results:
        whole = board(self.generator, self.generator.draw(self.n, seed=seed), seed=seed, clustering=UNIT)
        known = self.n // 2
        seen = replace(whole, x=self.judged(self.generator, whole, seed)) if self.judged else whole
        refitted = seen.up_to(known)
        fitted, best = cross_fit(refitted, self.learner), oracle(whole, self.generator.probabilities)
        mu = shrunken(fitted) if self.shrunk else fitted
        results: Results = {}
        for each in (estimand(name) for name in self.scores):
            true = truths[each.name]
            for rule, size in (("1.5 x", known * 3 // 2), ("2 x", self.n)):
                rows = seen.up_to(size)
                found = live(rows, _one(refitted, mu, each), mu, known=known)
                results[rule, each.name] = _against(rows, found, true, best, each)
                if "refit" in self.rules:
                    again = _one(rows, cross_fit(rows, self.learner), each)
                    drift = tuple((found.estimate.value - again.estimate.value).tolist())
                    results[rule, each.name] = replace(results[rule, each.name], drift=drift)
                    # The last one is of all rows.
                    results["refit", each.name] = _against(rows, again, true, best, each)
        return results


def live(on: Board, refitted: OneStep, mu: CrossFit, *, known: int) -> OneStep:
    """The score of the first `known` rows with the others added."""
    sample = on.sample
    late = segment(sample, np.arange(sample.n_rows) >= known, propensity=sample.votes.propensity)
    sums = live_sums(late, mu, {"": refitted.target})[""]
    plug_in = sums.plug_in(refitted.plug_in, known)
    return replace(refitted, estimate=sums.estimate(refitted.estimate), plug_in=plug_in, rows_used=sample.n_rows)


def shrunken(mu: CrossFit) -> CrossFit:
    """Models halfway to even chances."""

    def half(fold: int, patterns: Ints) -> Floats:
        given = mu(fold, patterns)
        flat: Floats = (given + 1.0 / given.shape[-1]) / 2
        return flat

    return half


def _one(on: Board, mu: CrossFit, score: Estimand) -> OneStep:
    return estimate(on.sample, mu, [score], clustering=UNIT)[score.name].every


def _against(on: Board, found: OneStep, true: Floats, best: CrossFit, score: Estimand) -> Measured:
    return measured(found, _one(on, best, score), true)


def lives(learner: str) -> Iterator[Live]:
    """The service's rule, and models that are much too flat."""
    rules = {"1.5 x": COVERS_ALONE, "2 x": COVERS_ALONE}
    yield Live("after a refit", ("borda", "bt"), {"refit": COVERS_ALONE, **rules}, learner)
    yield Live("flat models, linear score", ("borda",), rules, learner, shrunk=True)
    fails = {"1.5 x": FAILS, "2 x": FAILS}
    yield Live("flat models", ("bt",), fails, learner, shrunk=True)
    yield Live("judges", ("borda", "bt"), rules, learner, judged=asked, n=JUDGED_ROWS)
    yield Live("judges of what is shown", ("borda", "bt"), fails, learner, judged=asked_what_is_shown, n=JUDGED_ROWS)
