"""Boards of the electorate: what every method makes of the same votes, judged on the truth."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from app.experiments.equilibrium.methods import Fits, menu_sample
from app.stats.games import Terms, equilibria, exploitability, support_f1
from app.stats.simulate.electorate import Electorate, Feedback
from app.stats.types import Floats

N, N_TEST = 3000, 1000
STRENGTH = 0.05
FEEDBACK: tuple[Feedback, ...] = ("pairs", "rankings", "winners")
EXPLOITABILITY, F1 = "exploitability", "F1"


@dataclass(frozen=True)
class Cell:
    """One board.

    Parameters
    ----------
    electorate : who votes.
    learner : name of the outcome learner.
    seed : of the draws.
    n : contexts with votes.
    terms : of the games.
    """

    electorate: Electorate
    learner: str
    seed: int
    n: int = N
    terms: Terms = field(default_factory=lambda: Terms(STRENGTH))

    @cached_property
    def fits(self) -> Fits:
        """What is fitted to the votes."""
        drawn = self.electorate.draw(self.n, seed=self.seed)
        sample = menu_sample(self.electorate.menus, drawn.votes, self.n, seed=self.seed)
        return Fits.of(drawn.x, sample, self.learner, self.terms, seed=self.seed)

    @cached_property
    def x(self) -> Floats:
        """(1000, d) contexts of the test."""
        uniform = np.random.default_rng([self.seed, 2]).random((N_TEST, self.electorate.n_covariates))
        return self.electorate.covariates(uniform)

    @cached_property
    def truth(self) -> Floats:
        """(1000, K, K) their payoffs."""
        return self.electorate.payoffs(self.x)

    def judged(self, lotteries: Floats, terms: Terms | None = None) -> dict[str, float]:
        """Mean exploitability, and F1 of the winners against those of the true games."""
        true = equilibria(self.truth, terms or self.terms).lotteries
        return {
            EXPLOITABILITY: float(exploitability(self.truth, lotteries).mean()),
            F1: float(support_f1(lotteries, true).mean()),
        }


def voters(count: int) -> str:
    """The name of a board's level."""
    return f"{count} voter" if count == 1 else f"{count} voters"
