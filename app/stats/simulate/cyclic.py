"""A context board with cyclic preferences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from app.stats.simulate.generator import Draws, draw_categories, pulls
from app.stats.simulate.preferences import Preferences
from app.stats.types import Floats, Ints, Rule, Votes


@dataclass(frozen=True)
class Cyclic:
    """Contexts x uniform on [-1, 1]^d, three outcomes, each ordered pair labelled by an independent coin.

    pi_jk(x) = low + (high - low) σ(v_j·x + v_k·x - 1.5): about 2.8 labels a context at K = 5.

    Parameters
    ----------
    n_items, n_covariates : K and d >= 2.
    cycle : strength of the cyclic pair terms, in log-odds.
    low, high : bounds of the propensities.
    world : seed of the coefficients.
    """

    n_items: int = 5
    n_covariates: int = 5
    cycle: float = 0.5
    low: float = 0.05
    high: float = 0.45
    world: int = 0

    @property
    def rule(self) -> Rule:
        """Ternary: left, right, tie; a tie is half a win for both."""
        return Rule(np.array([1.0, 0.0, 0.5]), np.array([0.0, 1.0, 0.5]))

    @cached_property
    def preferences(self) -> Preferences:
        """The outcome model's coefficients."""
        return Preferences.drawn((self.n_items, self.n_covariates), (-0.7,), cycle=self.cycle, world=self.world)

    def covariates(self, uniform: Floats) -> Floats:
        """Uniform on [-1, 1]^d."""
        return 2.0 * uniform - 1.0

    def probabilities(self, x: Floats) -> Floats:
        """Exact mu (n, K, K, 3)."""
        return self.preferences.outcomes(x, self.preferences.margins(x))

    def probabilities_at(self, x: Floats, left: Ints, right: Ints) -> Floats:
        """Exact mu (m, 3)."""
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
