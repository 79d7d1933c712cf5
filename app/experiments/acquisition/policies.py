"""Policies by name: propensities from what is known before a stage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from app.experiments.acquisition.labelling import UNIT, Stage, even
from app.stats.acquisition import (
    Beliefs,
    Design,
    Policy,
    Rules,
    contrast_weight,
    d_weight,
    e_weight,
    pair_row,
    pair_square,
    reliability,
)
from app.stats.debias import estimate
from app.stats.gars import Estimand
from app.stats.inference import open_neighbours
from app.stats.types import Floats

A_OPTIMAL, PLAIN, D_OPTIMAL, E_OPTIMAL = "a-optimal", "a-optimal, untempered", "d-optimal", "e-optimal"
CONTRAST, ORACLE, UNIFORM, ARENA = "contrast", "oracle", "uniform", "arena"


def planned(sensitivity: Floats, rules: Rules, *, exponent: float) -> Floats:
    """(u, K (K-1)) propensities that spend the budget on these contexts.

    Parameters
    ----------
    sensitivity : (u, K (K-1)) a.
    rules : budget and mode; every label costs the same.
    exponent : how far a is believed.
    """
    cost = np.ones(sensitivity.shape[-1])
    return Policy.calibrated(sensitivity, cost, rules, exponent=exponent).propensities(sensitivity)


def design(beliefs: Beliefs, stage: Stage, estimand: Estimand) -> Design:
    """The problem whose answer is W."""

    def allocate(sensitivities: Floats) -> Floats:
        return pair_square(planned(pair_row(sensitivities.mean(axis=0)), stage.rules, exponent=1.0))

    return Design(beliefs, estimand, stage.graph, allocate)


def identity(stage: Stage, _estimand: Estimand) -> Floats:
    """W of A-optimality."""
    return np.eye(stage.generator.n_items)


def for_volume(stage: Stage, estimand: Estimand) -> Floats:
    """W of D-optimality."""
    return d_weight(design(stage.believed, stage, estimand))


def for_largest(stage: Stage, estimand: Estimand) -> Floats:
    """W of E-optimality."""
    return e_weight(design(stage.believed, stage, estimand))[0]


def for_neighbours(stage: Stage, estimand: Estimand) -> Floats:
    """W of the neighbours that the labels so far leave open."""
    scores = estimate(stage.board.sample, stage.mu, [estimand], clustering=UNIT)[estimand.name].every
    return contrast_weight(open_neighbours(scores.estimate))


Weigh = Callable[[Stage, Estimand], Floats]


def optimal(stage: Stage, estimand: Estimand, *, weigh: Weigh = identity, temper: bool = True) -> Floats:
    """As the service does it: a averaged over the fold models, believed as far as they agree."""
    found = pair_row(stage.believed.sensitivities(estimand, stage.graph, weigh(stage, estimand)))
    return planned(found.mean(axis=0), stage.rules, exponent=reliability(found) if temper else 1.0)


def oracle(stage: Stage, estimand: Estimand) -> Floats:
    """A-optimal for the true preferences."""
    found = stage.true.sensitivities(estimand, stage.graph, identity(stage, estimand))
    return planned(pair_row(found[0]), stage.rules, exponent=1.0)


def uniform(stage: Stage, _estimand: Estimand) -> Floats:
    """All pairs alike."""
    return even(stage.generator.n_items, stage.rules, stage.contexts.size)


def arena(stage: Stage, _estimand: Estimand) -> Floats:
    """Proportional to √(σ/n) - √(σ/(n+1)), σ the variance of a pair's credit, n its labels, whatever the context.

    The rule by which Chatbot Arena chose pairs (Chiang et al., arXiv 2403.04132, Section 5), with either side first.
    """
    spread, count = _credits(stage)
    gain = np.sqrt(spread / count) - np.sqrt(spread / (count + 1.0))
    row = pair_row(gain[None])
    return planned(np.repeat(row**2, stage.contexts.size, axis=0), stage.rules, exponent=1.0)


def _credits(stage: Stage) -> tuple[Floats, Floats]:
    """(K, K) variance of the credit and number of labels of each unordered pair; one and a quarter where unknown."""
    votes, size = stage.board.sample.votes, stage.generator.n_items
    rule = stage.generator.rule
    sums = np.zeros((3, size, size))
    for first, second, credit in ((votes.left, votes.right, rule.first), (votes.right, votes.left, rule.second)):
        for power in range(3):
            np.add.at(sums[power], (first, second), credit[votes.outcome] ** power)
    count = np.maximum(sums[0], 1.0)
    variance = sums[2] / count - (sums[1] / count) ** 2
    return np.where(variance > 0, variance, 0.25), count


Choose = Callable[[Stage, Estimand], Floats]
POLICIES: Mapping[str, Choose] = {
    UNIFORM: uniform,
    ARENA: arena,
    A_OPTIMAL: optimal,
    PLAIN: partial(optimal, temper=False),
    D_OPTIMAL: partial(optimal, weigh=for_volume),
    E_OPTIMAL: partial(optimal, weigh=for_largest),
    CONTRAST: partial(optimal, weigh=for_neighbours),
    ORACLE: oracle,
}
BLIND = (UNIFORM, ARENA)
"""Policies that do not ask what is to be scored."""
