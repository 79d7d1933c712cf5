"""Do D-, E-optimal and contrast weights do what they are for, on what fold models say after 2,000 labels?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from app.experiments.acquisition import policies
from app.experiments.acquisition.figures import Collected, Figures
from app.experiments.acquisition.labelling import Site, Stage, even, steep
from app.experiments.coverage.case import ESTIMANDS
from app.experiments.curves import Spot, Verdict
from app.stats.acquisition import Design, Rules, e_weight
from app.stats.acquisition.criteria import RANK_TOLERANCE
from app.stats.gars import Estimand
from app.stats.types import Floats

BUDGET = 4.0 / 3.0
STEPS = 4
MOST_GAP, MOST_CONTRAST, ROUNDING = 0.03, 1.4, 1e-9
TRACE, LARGEST, VOLUME = "tr Sigma", "largest eigenvalue", "geometric mean eigenvalue"
GAP, RISE = "gap to the bound", "largest rise in a step"


@dataclass(frozen=True)
class Criteria:
    """Covariances of the policies that the models take for best.

    Parameters
    ----------
    learner : name of the outcome learner.
    sizes : items of the boards.
    labelled, contexts : contexts of the labels, and those on which policies are sought.
    """

    learner: str = "davidson"
    sizes: tuple[int, ...] = (5, 10)
    labelled: int = 1500
    contexts: int = 300
    title: str = "Covariances that fold models expect after 2,000 labels; ratios to the A-optimal policy"
    reference: str = policies.A_OPTIMAL

    def replicate(self, seed: int) -> Figures:
        figures: dict[Spot, Mapping[str, float]] = {}
        for size in self.sizes:
            stage = self._stage(size, seed)
            for each in ESTIMANDS:
                found = _figures(stage, each)
                figures |= {Spot(each.name, name, f"{size} items"): values for name, values in found.items()}
        return figures

    def _stage(self, size: int, seed: int) -> Stage:
        rules = Rules("bernoulli", BUDGET)
        site = Site(steep(size), self.labelled + self.contexts, seed)
        labels = site.label(0, even(size, rules, self.labelled), rules.mode)
        fresh = self.labelled + np.arange(self.contexts)
        return Stage.of(site, site.board([labels], self.labelled), fresh, rules, learner=self.learner)

    def verdicts(self, found: Collected) -> Iterator[Verdict]:
        for chosen in found.spots:
            base = Spot(chosen.estimand, policies.A_OPTIMAL, chosen.level)
            match chosen.estimator:
                case policies.D_OPTIMAL:
                    yield _largest(found, chosen, RISE, ROUNDING)
                case policies.E_OPTIMAL:
                    yield _largest(found, chosen, GAP, MOST_GAP)
                    yield found.at_most((chosen, base), LARGEST, 1.0 + ROUNDING)
                case policies.CONTRAST:
                    yield found.at_most((chosen, base), TRACE, MOST_CONTRAST)


def _figures(stage: Stage, estimand: Estimand) -> dict[str, dict[str, float]]:
    design = policies.design(stage.believed, stage, estimand)
    weight, gap = e_weight(design)
    return {
        policies.A_OPTIMAL: _of(design.covariance(policies.identity(stage, estimand))),
        policies.D_OPTIMAL: {**_of(design.covariance(policies.for_volume(stage, estimand))), RISE: _rise(design)},
        policies.E_OPTIMAL: {**_of(design.covariance(weight)), GAP: gap},
        policies.CONTRAST: _of(design.covariance(policies.for_neighbours(stage, estimand))),
    }


def _of(covariance: Floats) -> dict[str, float]:
    values = np.linalg.eigvalsh(covariance)
    known = values[values > RANK_TOLERANCE * values[-1]]
    return {TRACE: float(values.sum()), LARGEST: float(values[-1]), VOLUME: float(np.exp(np.log(known).mean()))}


def _rise(design: Design) -> float:
    """The most that log det Sigma, over its rank, rises in a step W ← Sigma⁺ from the A-optimal policy on."""
    covariance = design.covariance(np.eye(design.graph.n_items))
    volumes = [_of(covariance)[VOLUME]]
    for _ in range(STEPS):
        inverse = np.linalg.pinv(covariance, rcond=RANK_TOLERANCE, hermitian=True)
        covariance = design.covariance(inverse.astype(np.float64))
        volumes.append(_of(covariance)[VOLUME])
    return float(np.diff(np.log(volumes)).max())


def _largest(found: Collected, spot: Spot, quantity: str, limit: float) -> Verdict:
    worst = float(found.values(spot, quantity).max())
    words = f"{spot.level}, {spot.estimand}: {spot.estimator} never has a {quantity} > {limit:g}"
    return Verdict(words, f"at most {worst:.2g}", worst <= limit)
