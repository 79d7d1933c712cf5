"""Policies from estimated preferences, by their true variance on new contexts, against the one from the true ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from app.experiments.acquisition import policies
from app.experiments.acquisition.figures import Collected, Figures
from app.experiments.acquisition.labelling import Site, Stage, even, steep
from app.experiments.coverage.case import ESTIMANDS
from app.experiments.curves import Spot, Verdict
from app.stats.acquisition import Rules, pair_square
from app.stats.gars import Estimand
from app.stats.simulate import Cyclic, Strength

TRACE = "tr Sigma"
POLICIES = policies.UNIFORM, policies.A_OPTIMAL, policies.PLAIN, policies.ORACLE
BUDGET = 4.0 / 3.0
MOST_OF_UNIFORM = 1.01
Bars = Mapping[str, float]
AFTER_ALL: Bars = {"borda": 1.02, "bt": 1.02, "rc": 1.05}
FAINT = Strength(slope=0.4, curve=0.2, cycle=0.2)


@dataclass(frozen=True)
class Look:
    """A board's policies after some labels.

    Parameters
    ----------
    name : of the board.
    generator : the truth.
    labels : expected number, by the uniform policy.
    bars : the most that an estimand's variance may be of the oracle's; empty where it is held to uniform's alone.
    """

    name: str
    generator: Cyclic
    labels: int
    bars: Bars

    @property
    def level(self) -> str:
        """Its name in the table."""
        return f"{self.name}, {self.labels:,} labels"


LOOKS = (
    Look("5 items", steep(5), 667, {"borda": 1.04, "bt": 1.04, "rc": 1.08}),
    Look("5 items", steep(5), 2000, AFTER_ALL),
    Look("10 items", steep(10), 667, {"borda": 1.05, "bt": 1.05, "rc": 1.13}),
    Look("10 items", steep(10), 2000, AFTER_ALL),
    Look("20 items", steep(20), 667, {}),
    Look("20 items", steep(20), 6000, AFTER_ALL),
    Look("20 items, faint", Cyclic(20, strength=FAINT), 667, {}),
)
"""The last has preferences so faint that 667 labels say next to nothing: no policy may do worse than uniform there."""


@dataclass(frozen=True)
class AgainstOracle:
    """All looks at one seed.

    Parameters
    ----------
    learner : name of the outcome learner.
    looks : boards and numbers of labels.
    fresh : new contexts on which variances are taken; every policy spends the budget on them.
    """

    learner: str = "davidson"
    looks: tuple[Look, ...] = LOOKS
    fresh: int = 500
    title: str = "True tr Sigma of policies on new contexts; ratios to the policy that knows the true preferences"
    reference: str = policies.ORACLE

    def replicate(self, seed: int) -> Figures:
        figures: dict[Spot, Mapping[str, float]] = {}
        for look in self.looks:
            stage = self._stage(look, seed)
            for each in ESTIMANDS:
                for name in POLICIES:
                    figures[Spot(each.name, name, look.level)] = {TRACE: _trace(stage, each, name)}
        return figures

    def _stage(self, look: Look, seed: int) -> Stage:
        rules, n_rows = Rules("bernoulli", BUDGET), round(look.labels / BUDGET)
        site = Site(look.generator, n_rows + self.fresh, seed)
        labels = site.label(0, even(look.generator.n_items, rules, n_rows), rules.mode)
        fresh = n_rows + np.arange(self.fresh)
        return Stage.of(site, site.board([labels], n_rows), fresh, rules, learner=self.learner)

    def verdicts(self, found: Collected) -> Iterator[Verdict]:
        for look in self.looks:
            for each in ESTIMANDS:
                chosen, ideal, even_spot = (
                    Spot(each.name, name, look.level)
                    for name in (policies.A_OPTIMAL, policies.ORACLE, policies.UNIFORM)
                )
                if each.name in look.bars:
                    yield found.at_most((chosen, ideal), TRACE, look.bars[each.name])
                worst = float((found.values(chosen, TRACE) / found.values(even_spot, TRACE)).max())
                words = f"{look.level}, {each.name}: a-optimal never has > {MOST_OF_UNIFORM} × uniform's tr Sigma"
                yield Verdict(words, f"at most {worst:.3f}", worst <= MOST_OF_UNIFORM)


def _trace(stage: Stage, estimand: Estimand, name: str) -> float:
    propensity = pair_square(policies.POLICIES[name](stage, estimand))
    return float(np.trace(stage.true.covariance(estimand, stage.graph, propensity)))
