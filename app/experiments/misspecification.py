"""What is gained by believing in a Bradley-Terry model where it holds, and lost where it does not (DMLRank, Fig. 4b)?

Binary preferences have utilities that are additive up to pair terms of size γ. Errors are held against the projection
of the true log-odds on additive scores, which exists whatever γ is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from app.experiments.boards import Board, board, cross_fit
from app.experiments.coverage.bars import hits_needed
from app.experiments.coverage.case import truths_of
from app.experiments.coverage.measure import mean_square, measured
from app.experiments.curves import Curves, Outcome, Outcomes, Runs, Spot, Verdict
from app.stats.contextual_bt import Comparisons, ContextualBT, fit_plug_in, fit_regularised
from app.stats.debias import Clustering, CrossFit, OneStep, estimate
from app.stats.debias.restricted import restricted
from app.stats.gars import BradleyTerry
from app.stats.simulate import Cyclic, Strength
from app.stats.types import Floats, Ints

UNIT = Clustering(unit="context")
BT = BradleyTerry()
GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0)
TIES = "ties, γ = 0"
PROJECTION, PLUG_IN, RESTRICTED = "projection", "plug-in", "restricted"
CONTROL = "restricted, ties ignored"
CONTEXTUAL: Mapping[str, Callable[[Comparisons], ContextualBT]] = {
    "contextual BT": fit_plug_in,
    "contextual BT, ridge": fit_regularised,
}


def generator(level: str) -> Cyclic:
    """The board of a level: binary with pair terms, or additive and half of the votes ties, credited to nobody."""
    if level == TIES:
        return Cyclic(outcomes="decisive", strength=Strength(cycle=0.0), tie=0.7)
    size = float(level.removeprefix("γ = "))
    return Cyclic(outcomes="binary", strength=Strength(cycle=size, pairs=size))


LEVELS = (*(f"γ = {gamma:g}" for gamma in GAMMAS), TIES)


@dataclass(frozen=True)
class Misspecified:
    """Boards of n contexts at every level, read by all estimators."""

    truths: Mapping[str, Floats]
    learner: str
    n: int

    def __call__(self, seed: int) -> Outcomes:
        return {
            Spot(BT.name, name, level): outcome
            for level, true in self.truths.items()
            for name, outcome in self._outcomes(level, true, seed)
        }

    def _outcomes(self, level: str, true: Floats, seed: int) -> Iterator[tuple[str, Outcome]]:
        on = generator(level)
        drawn = board(on, on.draw(self.n, seed=seed), seed=seed, clustering=UNIT)
        mu = cross_fit(drawn, self.learner)
        projected = estimate(drawn.sample, mu, [BT], clustering=UNIT)[BT.name].every
        yield PROJECTION, _judged(projected, true)
        yield PLUG_IN, Outcome(mean_square(projected.plug_in - true))
        yield RESTRICTED, _judged(_restricted(drawn, on, mu), true)
        if level == TIES:
            yield CONTROL, _judged(_restricted(drawn, on, _decided(mu)), true)
        comparisons = Comparisons.of(drawn.sample, drawn.x.x)
        for name, fit in CONTEXTUAL.items():
            utilities = fit(comparisons).utilities(drawn.x.x)
            yield name, Outcome(mean_square(utilities.mean(axis=0) - true))


def _restricted(drawn: Board, on: Cyclic, mu: CrossFit) -> OneStep:
    def policy(_fold: int, patterns: Ints) -> Floats:
        return on.propensities(drawn.x.x[patterns])

    return restricted(drawn.sample, mu, policy, clustering=UNIT)


def _decided(mu: CrossFit) -> CrossFit:
    """The chances given that a vote is decisive, as if every vote were."""

    def without_ties(fold: int, patterns: Ints) -> Floats:
        decisive = mu(fold, patterns) * np.array([1.0, 1.0, 0.0])
        chances: Floats = decisive / decisive.sum(axis=-1, keepdims=True)
        return chances

    return without_ties


def _judged(found: OneStep, true: Floats) -> Outcome:
    result = measured(found, found, true)
    return Outcome(result.error, result.hit)


def misspecified(learner: str = "davidson", n: int = 1000) -> Misspecified:
    """The experiment's replicate, on boards of n contexts."""
    truths = {level: truths_of(generator(level), estimands=[BT])[BT.name] for level in LEVELS}
    return Misspecified(truths, learner, n)


def curves(runs: Runs) -> Curves:
    """What the replicates show."""
    title = "Errors against the projection of the true log-odds, by the size γ of pair terms"
    return Curves(title, "board", runs.points, tuple(_verdicts(runs)))


def _verdicts(runs: Runs) -> Iterator[Verdict]:
    def ratio(level: str) -> tuple[float, float]:
        return runs.ratio(Spot(BT.name, RESTRICTED, level), Spot(BT.name, PROJECTION, level))

    restricted_at, projection_at = (Spot(BT.name, name, LEVELS[0]) for name in (RESTRICTED, PROJECTION))
    yield runs.compare("restricted beats projection at γ = 0", restricted_at, projection_at, lambda r, e: r < 1.0 - e)
    lost = [level for level in LEVELS[1:-1] if ratio(level)[0] > 1.0 + ratio(level)[1]]
    yield Verdict("restricted loses beyond some γ", f"from {lost[0]}" if lost else "nowhere", bool(lost))
    for name, covers in ((RESTRICTED, True), (CONTROL, False)):
        hits, runs_made = runs.hits(Spot(BT.name, name, TIES)), runs.size
        words = "covers" if covers else "must fail to cover"
        enough = hits >= hits_needed(runs_made)
        yield Verdict(f"{name}: {words} with ties", f"{hits}/{runs_made}", enough == covers)
