"""Votes on a complete table of scores: nothing about the truth is assumed but the table."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.stats.gars import Estimand, Graph
from app.stats.simulate.generator import Draws, draw_categories, pulls
from app.stats.types import Floats, Ints, Rule, Votes

LEFT, RIGHT, TIE, BOTH_BAD = range(4)


@dataclass(frozen=True)
class Scored:
    """Questions that every item has answered; an offer draws one of them, and an ordered pair.

    The outcome follows from the two scores: the higher one wins, equal ones tie, and where both are 0 both are bad.
    What an estimator may condition on is the question's group. mu(group) is then a mean over the group's questions and
    every score's truth an exact sum. pi mixes the uniform policy (weight .3) with one that prefers some items, others
    in each group.

    Parameters
    ----------
    scores : (Q, K) what each item scored on each question, 0 at worst.
    group : (Q,) labels 0 .. G-1.
    world : seed of the policy.
    """

    scores: Floats
    group: Ints
    world: int = 0

    @property
    def n_items(self) -> int:
        """K."""
        return int(self.scores.shape[1])

    @property
    def rule(self) -> Rule:
        """Left, right, tie, both bad; the last two are half a win for both."""
        return Rule(np.array([1.0, 0.0, 0.5, 0.5]), np.array([0.0, 1.0, 0.5, 0.5]))

    @cached_property
    def outcomes(self) -> Ints:
        """(Q, K, K) the category of each question and ordered pair."""
        first, second = self.scores[:, :, None], self.scores[:, None, :]
        equal = np.where(np.maximum(first, second) > 0, TIE, BOTH_BAD)
        return np.where(first > second, LEFT, np.where(first < second, RIGHT, equal)).astype(np.int64)

    @cached_property
    def group_share(self) -> Floats:
        """(G,) share of the questions in each group."""
        return np.bincount(self.group) / self.group.size

    @cached_property
    def group_mu(self) -> Floats:
        """Exact mu (G, K, K, 4) of each group."""
        mu = np.zeros((self.group_share.size, self.n_items, self.n_items, 4))
        for category in range(4):
            np.add.at(mu[..., category], self.group, self.outcomes == category)
        shares: Floats = mu / mu.sum(axis=-1, keepdims=True)
        return shares

    @cached_property
    def group_policy(self) -> Floats:
        """Exact pi (G, K, K), summing to 1 over the ordered pairs."""
        pull = pulls(self.group_share.size, self.n_items, spread=0.8 * np.sqrt(self.n_items), world=self.world)
        others = 1.0 - np.eye(self.n_items)
        weight = np.exp(pull[:, :, None] + pull[:, None, :]) * others
        policy: Floats = 0.3 * others / others.sum() + 0.7 * weight / weight.sum(axis=(1, 2), keepdims=True)
        return policy

    def truth(self, estimand: Estimand, graph: Graph) -> Floats:
        """theta = Σ over groups of share × F(mu(group)): (K,)."""
        value: Floats = self.group_share @ estimand.value(self.rule.scores(self.group_mu), graph)
        return value

    def questions(self, n_rows: int, *, seed: int) -> Ints:
        """(n,) the question of each row of the board with this seed."""
        return np.random.default_rng([seed, 0]).integers(self.group.size, size=n_rows)

    def draw(self, n_rows: int, *, seed: int) -> Draws:
        """A board of n offers with a vote each; x (n, G) says which group a row's question is in."""
        question = self.questions(n_rows, seed=seed)
        group = self.group[question]
        policy = self.group_policy[group].reshape(n_rows, -1)
        pair = draw_categories(np.random.default_rng([seed, 1]), policy)
        left, right = np.divmod(pair, self.n_items)
        row = np.arange(n_rows)
        votes = Votes(
            row, left, right, self.outcomes[question, left, right], np.ones(n_rows), row.copy(), policy[row, pair]
        )
        return Draws(np.eye(self.group_share.size)[group], votes)
