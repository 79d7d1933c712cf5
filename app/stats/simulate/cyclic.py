"""A context board with cyclic preferences: the one that stands for the paper's synthetic data."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import expit

from app.stats.simulate.generator import Draws, draw_categories, pulls
from app.stats.simulate.preferences import Preferences, Strength
from app.stats.types import Floats, Ints, Rule, Votes

Outcomes = Literal["binary", "ternary", "decisive"]
RULES: dict[Outcomes, tuple[list[float], list[float]]] = {
    "binary": ([1.0, 0.0], [0.0, 1.0]),
    "ternary": ([1.0, 0.0, 0.5], [0.0, 1.0, 0.5]),
    "decisive": ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
}


@dataclass(frozen=True)
class Cyclic:
    """Contexts x uniform on [-1, 1]^d, three outcomes, each ordered pair labelled by an independent coin.

    Sized as the synthetic data of DMLRank (arXiv 2601.21816, Section 7.1): win, loss and tie, 5 covariates.
    pi_jk(x) = low + (high - low) σ(v_j·x + v_k·x - 1.5): about 2.8 labels a context at K = 5. Without pair terms
    (`Strength(cycle=0)`) a Bradley-Terry model holds in every context.

    Parameters
    ----------
    n_items, n_covariates : K and d >= 2.
    strength : of the preferences.
    low, high : bounds of the propensities.
    outcomes : `binary`; `ternary`, a tie half a win for both; `decisive`, ties occur and are credited to nobody.
    tie : mean log-odds of a tie, against a win between equals.
    world : seed of the coefficients.
    """

    n_items: int = 5
    n_covariates: int = 5
    strength: Strength = field(default_factory=Strength)
    low: float = 0.05
    high: float = 0.45
    outcomes: Outcomes = "ternary"
    tie: float = -0.7
    world: int = 0

    @property
    def rule(self) -> Rule:
        """How left, right and, unless binary, tie are credited."""
        first, second = RULES[self.outcomes]
        return Rule(np.array(first), np.array(second))

    @cached_property
    def preferences(self) -> Preferences:
        """The outcome model's coefficients."""
        ties = () if self.outcomes == "binary" else (self.tie,)
        shape = self.n_items, self.n_covariates
        return Preferences.drawn(shape, ties, strength=self.strength, world=self.world)

    def covariates(self, uniform: Floats) -> Floats:
        """Uniform on [-1, 1]^d."""
        return 2.0 * uniform - 1.0

    def probabilities(self, x: Floats) -> Floats:
        """Exact mu (n, K, K, C)."""
        return self.preferences.outcomes(x, self.preferences.margins(x))

    def probabilities_at(self, x: Floats, left: Ints, right: Ints) -> Floats:
        """Exact mu (m, C)."""
        return self.preferences.outcomes(x, self.preferences.margins_at(x, left, right))

    def propensities(self, x: Floats) -> Floats:
        """Exact pi (n, K, K)."""
        pull = x @ pulls(self.n_items, self.n_covariates, spread=1.2, world=self.world).T
        chance = self.low + (self.high - self.low) * expit(pull[:, :, None] + pull[:, None, :] - 1.5)
        return chance * (1.0 - np.eye(self.n_items))

    def draw(self, n_rows: int, *, seed: int) -> Draws:
        """A board of n contexts; every vote has a voter of its own."""
        generator = np.random.default_rng(seed)
        x = self.covariates(generator.random((n_rows, self.n_covariates)))
        policy = self.propensities(x)
        row, left, right = np.nonzero(generator.random(policy.shape) < policy)
        outcome = draw_categories(generator, self.probabilities_at(x[row], left, right))
        voter = np.arange(row.size)
        return Draws(x, Votes(row, left, right, outcome, np.ones(row.size), voter, policy[row, left, right]))
