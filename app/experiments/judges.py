"""Do judges make scores more certain, the better they are, and do useless ones cost nothing (DMLRank, Fig. 4a)?

A judge's verdict on a pair is its true log-odds plus noise. It enters as a feature of the outcome model, so that it may
only help as far as the votes confirm it; the scores that are estimated stay the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from app.experiments.boards import Board, board, cross_fit
from app.experiments.coverage.case import ESTIMANDS, truths_of
from app.experiments.coverage.measure import measured
from app.experiments.curves import Curves, Outcome, Outcomes, Runs, Spot, Verdict
from app.stats.debias import Clustering, estimate
from app.stats.simulate import Cyclic, Strength
from app.stats.types import Floats

UNIT = Clustering(unit="context")
# Preferences mild enough that the one-step with the true outcome model is the best there is, and a learner that is far
# from it: the paper's classifier.
MILD = Cyclic(strength=Strength(slope=0.6, curve=0.6, cycle=0.6))
LEARNER = "lightgbm"
NOISE: Mapping[str, float] = {"noise 4": 4.0, "noise 2": 2.0, "noise 1": 1.0, "noise 0.5": 0.5}
"""Standard deviation in log-odds of the noise on each pair.

A judge without noise lowers the errors of Borda and Bradley-Terry scores further, but not surely that of rank
centrality: scores of a model that is drawn to its mean a little scatter less than those of the true one.
"""
NONE, USELESS = "none", "useless"
MOST_COST = 1.05
ESTIMATOR = "debiased"


@dataclass(frozen=True)
class Judged:
    """A board of n contexts, estimated without a judge, with a useless one, and with ever better ones."""

    truths: Mapping[str, Floats]
    learner: str
    n: int
    generator: Cyclic = MILD

    def __call__(self, seed: int) -> Outcomes:
        drawn = board(self.generator, self.generator.draw(self.n, seed=seed), seed=seed, clustering=UNIT)
        return {
            spot: outcome
            for level, margins in self._margins(drawn, seed).items()
            for spot, outcome in self._outcomes(level, replace(drawn, x=replace(drawn.x, margins=margins))).items()
        }

    def _margins(self, drawn: Board, seed: int) -> dict[str, Floats | None]:
        """(n, K, K, 1) of each judge; the same noise at every strength."""
        x = drawn.x.x
        noise = np.random.default_rng([seed, 23]).normal(size=(len(x), self.generator.n_items, self.generator.n_items))
        noise = (noise - noise.transpose(0, 2, 1)) / np.sqrt(2.0)
        preferences = self.generator.preferences
        known = preferences.margins(x) - preferences.position
        judges = {level: (known + size * noise)[..., None] for level, size in NOISE.items()}
        return {NONE: None, USELESS: noise[..., None], **judges}

    def _outcomes(self, level: str, judged: Board) -> Outcomes:
        found = estimate(judged.sample, cross_fit(judged, self.learner), ESTIMANDS, clustering=UNIT)
        outcomes = {}
        for name, scores in found.items():
            result = measured(scores.every, scores.every, self.truths[name])
            outcomes[Spot(name, ESTIMATOR, level)] = Outcome(result.error, result.hit)
        return outcomes


def judged(learner: str = LEARNER, n: int = 1000) -> Judged:
    """The experiment's replicate, on boards of n contexts."""
    return Judged(truths_of(MILD), learner, n)


def curves(runs: Runs) -> Curves:
    """What the replicates show."""
    verdicts = [verdict for each in ESTIMANDS for verdict in _verdicts(runs, each.name)]
    return Curves("Debiased scores with a judge of increasing quality", "judge", runs.points, tuple(verdicts))


def _verdicts(runs: Runs, estimand: str) -> list[Verdict]:
    def spot(level: str) -> Spot:
        return Spot(estimand, ESTIMATOR, level)

    def claim(words: str) -> str:
        return f"{estimand}: {words}"

    def no_more(better: str, worse: str) -> Verdict:
        words = claim(f"{better} errs no more than {worse}")
        return runs.compare(words, spot(better), spot(worse), lambda ratio, error: ratio <= 1.0 + error)

    def cheap(level: str) -> Verdict:
        words = claim(f"{level} costs < 5%")
        return runs.compare(words, spot(level), spot(NONE), lambda ratio, _: ratio < MOST_COST)

    steps = [no_more(better, worse) for worse, better in pairwise(NOISE)]
    worst, *_, best = NOISE
    return [*steps, no_more(best, NONE), cheap(worst), cheap(USELESS)]
