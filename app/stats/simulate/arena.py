"""A battle board with voters."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from app.stats.simulate.generator import Draws, draw_categories, pulls
from app.stats.simulate.preferences import Preferences, Strength
from app.stats.types import Bools, Floats, Ints, Rule, Votes

CHUNK = 2048


@dataclass(frozen=True)
class Shown:
    """Which ordered pairs may be shown when.

    Parameters
    ----------
    allowed : (g, K, K) the pairs of each period.
    period : (n,) each row's period.
    """

    allowed: Bools
    period: Ints


@dataclass(frozen=True)
class Arena:
    """One ordered pair an offer, x standard normal, outcomes left, right, tie, both bad.

    Items are shown more often where the context suits them: pi mixes the uniform policy (weight .3) with one
    proportional to exp(v_j·x + v_k·x). Voter v adds e_vj - e_vk to D, e_vj ~ N(0, taste²); mu(x) is the mean over the
    population of voters, of whom every board draws its own, with Dirichlet(½) shares of the votes.

    Parameters
    ----------
    n_items, n_covariates : K and d >= 2.
    strength : of the preferences.
    n_voters : voters of a board.
    taste : spread of their tastes, in log-odds.
    world : seed of the coefficients.
    """

    n_items: int = 20
    n_covariates: int = 6
    strength: Strength = field(default_factory=lambda: Strength(cycle=0.3))
    n_voters: int = 200
    taste: float = 0.7
    world: int = 0

    @property
    def rule(self) -> Rule:
        """Arena: left, right, tie, both bad; the last two are half a win for both."""
        return Rule(np.array([1.0, 0.0, 0.5, 0.5]), np.array([0.0, 1.0, 0.5, 0.5]))

    @cached_property
    def preferences(self) -> Preferences:
        """The outcome model's coefficients."""
        shape = self.n_items, self.n_covariates
        return Preferences.drawn(shape, (-0.8, -0.9), strength=self.strength, world=self.world)

    def covariates(self, uniform: Floats) -> Floats:
        """Standard normal."""
        normal: Floats = ndtri(np.clip(uniform, 1e-12, 1.0 - 1e-12))
        return normal

    def probabilities(self, x: Floats) -> Floats:
        """Exact mu (n, K, K, 4), the mean over voters."""
        return self.preferences.outcomes(x, self.preferences.margins(x), shift=self._shift)

    def probabilities_at(self, x: Floats, left: Ints, right: Ints) -> Floats:
        """Exact mu (m, 4), the mean over voters."""
        return self.preferences.outcomes(x, self.preferences.margins_at(x, left, right), shift=self._shift)

    def propensities(self, x: Floats) -> Floats:
        """Exact pi (n, K, K), summing to 1 over the ordered pairs."""
        pull = x @ pulls(self.n_items, self.n_covariates, spread=0.8, world=self.world).T
        others = 1.0 - np.eye(self.n_items)
        weight = np.exp(pull[:, :, None] + pull[:, None, :]) * others
        policy: Floats = 0.3 * others / others.sum() + 0.7 * weight / weight.sum(axis=(1, 2), keepdims=True)
        return policy

    def draw(self, n_rows: int, *, seed: int) -> Draws:
        """A board of n offers with a vote each."""
        return self.draw_among(self._everything(n_rows), seed=seed)

    def draw_among(self, shown: Shown, *, seed: int, x: Floats | None = None) -> Draws:
        """A board whose offers draw among some pairs only, each in proportion to its propensity.

        Parameters
        ----------
        shown : the pairs of each row.
        seed : equal seeds give equal boards.
        x : (n, d) the rows' covariates; drawn where they are not given.
        """
        n_rows = shown.period.size
        generator = np.random.default_rng(seed)
        if x is None:
            x = self.covariates(generator.random((n_rows, self.n_covariates)))
        left, right, propensity = self._pairs(generator, x, shown)
        voter = generator.choice(self.n_voters, n_rows, p=generator.dirichlet(np.full(self.n_voters, 0.5)))
        tastes = generator.normal(0.0, 1.0, (self.n_voters, self.n_items)) * self.taste
        margins = self.preferences.margins_at(x, left, right) + tastes[voter, left] - tastes[voter, right]
        outcome = draw_categories(generator, self.preferences.outcomes(x, margins))
        return Draws(x, Votes(np.arange(n_rows), left, right, outcome, np.ones(n_rows), voter, propensity))

    @property
    def _shift(self) -> float:
        """Standard deviation of the difference of two tastes."""
        return float(np.sqrt(2.0)) * self.taste

    def _everything(self, n_rows: int) -> Shown:
        allowed = ~np.eye(self.n_items, dtype=np.bool_)
        return Shown(allowed[None], np.zeros(n_rows, dtype=np.int64))

    def _pairs(self, generator: np.random.Generator, x: Floats, shown: Shown) -> tuple[Ints, Ints, Floats]:
        """One ordered pair a row with its propensity."""
        pair, chance = np.zeros(len(x), dtype=np.int64), np.zeros(len(x))
        for start in range(0, len(x), CHUNK):
            rows = slice(start, start + CHUNK)
            policy = (self.propensities(x[rows]) * shown.allowed[shown.period[rows]]).reshape(-1, self.n_items**2)
            policy /= policy.sum(axis=1, keepdims=True)
            drawn = draw_categories(generator, policy)
            pair[rows] = drawn
            chance[rows] = policy[np.arange(drawn.size), drawn]
        return pair // self.n_items, pair % self.n_items, chance
