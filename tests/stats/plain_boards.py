"""Battle boards without covariates whose chances are known: what the levels of tests are measured on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.simulate.generator import draw_categories
from app.stats.types import Floats, Ints, Rule, Sample, Votes

TERNARY = Rule(np.array([1.0, 0.0, 0.5]), np.array([0.0, 1.0, 0.5]))


@dataclass(frozen=True)
class PlainBoard:
    """A sample with its true chances (K, K, 3) of left, right and tie."""

    sample: Sample
    chances: Floats

    def mu(self, fold: int, patterns: Ints) -> Floats:  # noqa: ARG002 - the truth is the same for every fold
        return np.broadcast_to(self.chances, (patterns.size, *self.chances.shape))

    @property
    def of_votes(self) -> Floats:
        """(m, 3) the true chances of each vote."""
        return self.chances[self.sample.votes.left, self.sample.votes.right]


def davidson(margins: Floats, *, ties: float = 0.7) -> Floats:
    """(K, K, 3) chances from log-odds (K, K) of left against right."""
    weights = np.stack([np.exp(margins / 2), np.exp(-margins / 2), np.full(margins.shape, ties)], axis=-1)
    chances: Floats = weights / weights.sum(axis=-1, keepdims=True)
    return chances


def margins_of(scores: Floats, *, first: float = 0.0, cycle: float = 0.0) -> Floats:
    """(K, K) differences of scores, an advantage of the first side, and a term that goes around in a circle."""
    item = np.arange(scores.size)
    around = np.sin(2 * np.pi * (item[None, :] - item[:, None]) / scores.size)
    margins: Floats = scores[:, None] - scores + first + cycle * around
    return margins


def plain_board(
    rng: np.random.Generator, margins: Floats, n_votes: int, *, n_voters: int = 0, taste: float = 0.0
) -> PlainBoard:
    """Votes on ordered pairs drawn at random; voters of equal activity whose tastes shift their log-odds."""
    size = margins.shape[0]
    left = rng.integers(0, size, n_votes)
    right = (left + rng.integers(1, size, n_votes)) % size
    voter = rng.integers(0, n_voters, n_votes) if n_voters else np.arange(n_votes)
    liking = rng.normal(0.0, taste, (n_voters, size)) if n_voters else np.zeros((n_votes, size))
    own = margins[left, right] + liking[voter, left] - liking[voter, right]
    outcome = draw_categories(rng, davidson(own))
    row, chance = np.arange(n_votes), np.full(n_votes, 1.0 / (size * (size - 1)))
    votes = Votes(row, left, right, outcome, np.ones(n_votes), voter, chance)
    sample = Sample(size, TERNARY, votes, row, row % 5, np.zeros(n_votes, dtype=np.int64))
    return PlainBoard(sample, davidson(margins))
