"""A policy in force: fixed numbers that turn what the models say of a context into propensities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.acquisition.allocation import Mode, Terms, bernoulli, bernoulli_scale, single, single_scale
from app.stats.types import Floats

FLOOR_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Rules:
    """What the board asks of its policy.

    Parameters
    ----------
    mode : independent pairs, at most one, or exactly one pair a context.
    budget : β, expected labelling cost of a context; `one` ignores it.
    floor : the least propensity asked for, None for a fifth of the uniform policy's.
    exploration : ε in [0, 1], the share of the uniform policy mixed in.
    """

    mode: Mode
    budget: float
    floor: float | None = None
    exploration: float = 0.0


def uniform_propensity(rules: Rules, cost: Floats) -> float:
    """The same chance for every pair at the budget: β/Σc, at most 1/r in the modes with one pair a context."""
    pairs, total = cost.size, float(cost.sum())
    if rules.mode == "one":
        return 1.0 / pairs
    most = 1.0 if rules.mode == "bernoulli" else 1.0 / pairs
    return min(rules.budget / total, most) if total > 0 else most


def floor_of(rules: Rules, cost: Floats) -> float:
    """α as used: what was asked for, or .2 u, lowered to what the budget and the mode can carry."""
    uniform = uniform_propensity(rules, cost)
    asked = FLOOR_SHARE * uniform if rules.floor is None else rules.floor
    return min(asked, uniform)


def reachable(rules: Rules, cost: Floats) -> float:
    """The most that a policy of this mode can spend on a context."""
    return float(cost.sum() if rules.mode == "bernoulli" else cost.max(initial=0.0))


@dataclass(frozen=True, slots=True)
class Policy:
    """Propensities of r ordered pairs from tempered sensitivities.

    Parameters
    ----------
    rules : as asked.
    cost : (r,) of each pair.
    floor : α as used.
    exponent : ρ, how far the sensitivities are believed: pi ∝ a^(ρ/2).
    scale : 1/√λ; inf where the budget does not bind.
    """

    rules: Rules
    cost: Floats
    floor: float
    exponent: float
    scale: float

    @classmethod
    def calibrated(cls, sensitivity: Floats, cost: Floats, rules: Rules, *, exponent: float) -> Policy:
        """Find λ so that the mean over these contexts spends the budget.

        Parameters
        ----------
        sensitivity : (u, r) a, averaged over the fold models.
        cost : (r,) of each pair.
        """
        floor = floor_of(rules, cost)
        height, terms = heights(sensitivity, exponent), Terms(cost, floor)
        return cls(rules, cost, floor, exponent, _scale(height, terms, rules))

    @property
    def price(self) -> float:
        """λ, the worth of a unit of cost; 0 where the budget does not bind."""
        return float(self.scale**-2.0)

    def propensities(self, sensitivity: Floats) -> Floats:
        """pi (u, r) of contexts with these sensitivities (u, r); the mixture with the uniform policy included."""
        height, terms = heights(sensitivity, self.exponent), Terms(self.cost, self.floor)
        allocate = bernoulli if self.rules.mode == "bernoulli" else single
        best = allocate(height, terms, self.scale)
        share = self.rules.exploration
        return best if share == 0.0 else (1.0 - share) * best + share * uniform_propensity(self.rules, self.cost)


def heights(sensitivity: Floats, exponent: float) -> Floats:
    """h = a^(ρ/2); a context about which nothing is known has all pairs alike.

    Parameters
    ----------
    sensitivity : (u, r) non-negative.
    exponent : ρ.
    """
    if exponent == 0.0 or not (sensitivity > 0).any():
        return np.ones(sensitivity.shape)
    height: Floats = sensitivity ** (exponent / 2.0)
    return np.where((height > 0).any(axis=1, keepdims=True), height, 1.0)


def _scale(height: Floats, terms: Terms, rules: Rules) -> float:
    if rules.mode == "one":
        return np.inf
    if rules.mode == "single":
        return single_scale(height, terms, rules.budget)
    if rules.budget >= float(terms.cost.sum()):
        return np.inf
    return bernoulli_scale(height, terms, rules.budget)
