"""Two stages at the paper's budget: 1,500 contexts, 2,000 labels in all (DMLRank, arXiv 2601.21816, Table 2).

A third of the contexts is labelled by the uniform policy; fold models of these labels choose the pairs of the rest, at
the same budget a context. All labels are pooled and the scores cross-fitted anew, with the propensities as logged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from app.experiments.acquisition import policies
from app.experiments.acquisition.figures import Collected, Figures
from app.experiments.acquisition.labelling import UNIT, Site, Stage, even, steep
from app.experiments.boards import cross_fit
from app.experiments.coverage.case import ESTIMANDS, truths_of
from app.experiments.coverage.measure import mean_square
from app.experiments.curves import Spot, Verdict
from app.stats.acquisition import Rules
from app.stats.debias import estimate
from app.stats.gars import Estimand
from app.stats.inference import open_neighbours
from app.stats.simulate import Cyclic
from app.stats.types import Floats, Votes

MOST: Mapping[str, float] = {"borda": 0.995, "bt": 0.98, "rc": 0.92}
"""tr Sigma^/n of the A-optimal policy over that of the uniform one."""
MOST_CONTRAST = 1.4
TRACE, ERROR, OPEN = "tr Sigma^/n", "mean squared error", "open neighbours"
CHOSEN = tuple(name for name in policies.POLICIES if name not in (*policies.BLIND, policies.PLAIN))


@dataclass(frozen=True)
class TwoStages:
    """A site whose pairs are chosen by every policy, for every estimand.

    Parameters
    ----------
    truths : true scores by estimand.
    learner : name of the outcome learner.
    n, first : contexts, and how many of them are labelled before the policies choose.
    labels : expected labels in all.
    chosen : policies that ask what is to be scored; the others have one board for all estimands.
    """

    truths: Mapping[str, Floats]
    learner: str = "davidson"
    n: int = 1500
    first: int = 500
    labels: int = 2000
    chosen: tuple[str, ...] = CHOSEN
    generator: Cyclic = field(default_factory=lambda: steep(5))
    title: str = "Two stages, 1,500 contexts, 2,000 labels; ratios to the uniform policy on the same draws"
    reference: str = policies.UNIFORM

    def replicate(self, seed: int) -> Figures:
        site = Site(self.generator, self.n, seed)
        rules = Rules("bernoulli", self.labels / self.n)
        start = site.label(0, even(self.generator.n_items, rules, self.first), rules.mode)
        rest = np.arange(self.first, self.n)
        stage = Stage.of(site, site.board([start], self.first), rest, rules, learner=self.learner)
        figures: dict[Spot, Mapping[str, float]] = {}
        for name in policies.BLIND:
            figures |= self._scored(site, stage, start, name, ESTIMANDS)
        for name in self.chosen:
            for each in ESTIMANDS:
                figures |= self._scored(site, stage, start, name, (each,))
        return figures

    def _scored(
        self, site: Site, stage: Stage, start: Votes, name: str, scored: tuple[Estimand, ...]
    ) -> dict[Spot, Mapping[str, float]]:
        chosen = site.label(self.first, policies.POLICIES[name](stage, scored[0]), stage.rules.mode)
        pooled = site.board([start, chosen], self.n)
        found = estimate(pooled.sample, cross_fit(pooled, self.learner), scored, clustering=UNIT)
        figures: dict[Spot, Mapping[str, float]] = {}
        for each in scored:
            result = found[each.name].every.estimate
            figures[Spot(each.name, name, self.level)] = {
                TRACE: float(np.trace(result.covariance)),
                ERROR: mean_square(result.value - self.truths[each.name]),
                OPEN: float(open_neighbours(result).sum()),
            }
        return figures

    @property
    def level(self) -> str:
        """The board's name."""
        return f"{self.generator.n_items} items, {self.labels} labels"

    def verdicts(self, found: Collected) -> Iterator[Verdict]:
        for name, most in MOST.items():
            chosen, contrast, even_spot = (
                Spot(name, policy, self.level) for policy in (policies.A_OPTIMAL, policies.CONTRAST, policies.UNIFORM)
            )
            yield found.at_most((chosen, even_spot), TRACE, most)
            yield found.at_most((contrast, chosen), TRACE, MOST_CONTRAST)
            more = found.values(contrast, OPEN) - found.values(chosen, OPEN)
            reach = 2.0 * float(more.std() / np.sqrt(more.size))
            yield Verdict(
                f"{self.level}, {name}: contrast leaves no more neighbours open than a-optimal",
                f"{more.mean():+.2f} ± {reach:.2f}",
                bool(more.mean() <= reach),
            )


def two_stages(learner: str = "davidson") -> TwoStages:
    """The part of the experiment."""
    return TwoStages(truths_of(steep(5)), learner)
