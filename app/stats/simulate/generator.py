"""What every synthetic board offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.stats.types import Floats, Ints, Rule, Votes


@dataclass(frozen=True, slots=True)
class Draws:
    """A simulated board.

    Parameters
    ----------
    x : (n, d) covariates of each row.
    votes : the labels, `row` naming their row of x.
    """

    x: Floats
    votes: Votes


class Generator(Protocol):
    """A board whose outcome and selection probabilities are known."""

    @property
    def n_items(self) -> int:
        """K."""

    @property
    def n_covariates(self) -> int:
        """d."""

    @property
    def rule(self) -> Rule:
        """How its outcomes are credited."""

    def covariates(self, uniform: Floats) -> Floats:
        """Covariates (n, d) from independent uniforms (n, d) in (0, 1)."""

    def probabilities(self, x: Floats) -> Floats:
        """Exact mu (n, K, K, C) of every ordered pair; the diagonal carries no meaning."""

    def probabilities_at(self, x: Floats, left: Ints, right: Ints) -> Floats:
        """Exact mu (m, C) of one ordered pair a row of x (m, d)."""

    def propensities(self, x: Floats) -> Floats:
        """Exact pi (n, K, K) of every ordered pair; 0 on the diagonal."""

    def draw(self, n_rows: int, *, seed: int) -> Draws:
        """A board of n rows; equal seeds give equal boards."""


def draw_categories(generator: np.random.Generator, chances: Floats) -> Ints:
    """(m,) one category a row of chances (m, C), which need not sum to 1."""
    ladder = np.cumsum(chances, axis=1)
    height = generator.random(len(chances)) * ladder[:, -1]
    category: Ints = (ladder <= height[:, None]).sum(axis=1)
    return category


def pulls(n_items: int, n_covariates: int, *, spread: float, world: int) -> Floats:
    """v (K, d): how much each item's chance of being shown grows with the covariates; |v_j| about `spread`."""
    return np.random.default_rng([world, 1]).normal(0.0, spread / np.sqrt(n_covariates), (n_items, n_covariates))
