"""Voters who agree among themselves and not with each other: collective preferences with real cycles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.special import expit, softmax

from app.stats.feedback.aggregators import Aggregator, totals
from app.stats.feedback.menus import Menus, MenuVotes, all_menus
from app.stats.feedback.partitions import OUTSIDE, Tiers
from app.stats.types import Floats, Ints

Feedback = Literal["pairs", "rankings", "winners"]
N_ITEMS = 5
ORDER = (0, 2, 4, 1, 3)
"""Where on the circle of fields each next voter looks."""


@dataclass(frozen=True, slots=True)
class MenuDraws:
    """A simulated board: covariates (n, d) of each row, and votes."""

    x: Floats
    votes: MenuVotes


@dataclass(frozen=True)
class Electorate:
    """Five items, five fields of performance, voters who weigh the fields each in their own way.

    Item j performs in field m as

        z_jm(x) = 1.5 (1 - 2 ((perm_j - m) mod 5) / 4) + .5 tanh(W1 x + W2 sin 2x + b)_m + B_j x

    with perm a random permutation: each item leads in one field and falls behind around the circle. The second term is
    how easy a field is, for all items alike. Voter h weighs the fields by softmax_m(3 cos 2π(o_h - m)/5) and prefers
    the item with the larger weighted sum, without noise; each menu's voter is drawn evenly. Single voters are
    transitive; three or five together have no Condorcet winner in most contexts (NashEval, Appendix G, where cycles
    come about alike). Menus are shown each by its own coin, its chance logistic in x: .10 to .50 for pairs, .05 to .25
    for triples.

    Parameters
    ----------
    n_voters : 1 to 5.
    feedback : pairs; full rankings of triples; the winners of triples, without a verdict between losers.
    world : seed of all constants.
    """

    n_voters: int = 3
    feedback: Feedback = "pairs"
    world: int = 0
    n_covariates: int = 5

    @cached_property
    def menus(self) -> Menus:
        """All ten pairs or triples."""
        return all_menus(N_ITEMS, 2 if self.feedback == "pairs" else 3)

    @cached_property
    def _constants(self) -> dict[str, Floats]:
        rng = np.random.default_rng([self.world, 0])
        fields = N_ITEMS, self.n_covariates
        slope = rng.normal(size=(N_ITEMS, self.n_covariates))
        return {
            "leads": rng.permutation(N_ITEMS).astype(np.float64),
            "linear": rng.normal(size=fields),
            "waves": rng.normal(size=fields),
            "level": rng.normal(0.0, 0.7, N_ITEMS),
            "slope": slope / np.linalg.norm(slope, axis=1, keepdims=True),
            "pull": rng.normal(size=(len(self.menus.members), self.n_covariates)),
        }

    def covariates(self, uniform: Floats) -> Floats:
        """Uniform on [-1, 1]^d."""
        return 2.0 * uniform - 1.0

    def utilities(self, x: Floats) -> Floats:
        """(n, voters, K) exact utilities."""
        made = self._constants
        behind = np.mod(made["leads"][:, None] - np.arange(N_ITEMS), N_ITEMS)
        ease = np.tanh(x @ made["linear"].T + np.sin(2.0 * x) @ made["waves"].T + made["level"])
        performance = 1.5 * (1.0 - behind / 2.0) + 0.5 * ease[:, None, :] + (x @ made["slope"].T)[:, :, None]
        look = np.array(ORDER[: self.n_voters])[:, None] - np.arange(N_ITEMS)
        weights = softmax(3.0 * np.cos(2.0 * np.pi * look / N_ITEMS), axis=1)
        utilities: Floats = np.einsum("hm,njm->nhj", weights, performance)
        return utilities

    def propensities(self, x: Floats) -> Floats:
        """(n, Q) exact chances of each menu."""
        low, high = (0.1, 0.5) if self.feedback == "pairs" else (0.05, 0.25)
        chances: Floats = low + (high - low) * expit(x @ self._constants["pull"].T)
        return chances

    def margins(self, x: Floats) -> Floats:
        """(n, T) exact mu^m_jk(x) = E[Z^m_jk | x] at the cells of `menus`."""
        _, first, second = self.menus.cells
        tiers = self._tiers(self.utilities(x)[:, :, None, :], self.menus.members)
        menu = self.menus.cells[0]
        margins: Floats = np.sign(tiers[:, :, menu, second] - tiers[:, :, menu, first]).mean(axis=1)
        return margins

    def payoffs(self, x: Floats) -> Floats:
        """(n, K, K) exact A(x), the menus of a pair counted alike."""
        place = np.eye(self.menus.pairs[0].size)[self.menus.pair_of_cell]
        return self.menus.matrix(self.margins(x) @ (place / place.sum(axis=0)))

    def orthogonality(self, x: Floats, delta: float, aggregator: Aggregator) -> tuple[float, float]:
        """Root mean squared errors of E[Gamma | x] and of f(mu), exactly, when both nuisances are off by about delta.

        mu is off by delta tanh(x_1 + .5), e by a factor exp(delta (x_1 + x_2)). Given x, Z and S are independent, so
        E[Gamma | x] = f(mu') + Σ_m f'_m(mu') e/e' (mu - mu').

        Parameters
        ----------
        x : (n, d).
        delta : size of the error.
        aggregator : f.
        """
        exact = self.margins(x)
        wrong = exact + delta * np.tanh(x[:, :1] + 0.5)
        ratio = np.exp(-delta * (x[:, :1] + x[:, 1:2]))
        correction = totals(self.menus, aggregator.slopes(wrong) * ratio * (exact - wrong))
        truth, start = aggregator.payoffs(exact), aggregator.payoffs(wrong)
        return _root_mean_square(start + correction - truth), _root_mean_square(start - truth)

    def draw(self, n_rows: int, *, seed: int) -> MenuDraws:
        """A board of n contexts; equal seeds give equal boards."""
        rng = np.random.default_rng([self.world, seed, 1])
        x = self.covariates(rng.random((n_rows, self.n_covariates)))
        chance = self.propensities(x)
        row, menu = np.nonzero(rng.random(chance.shape) < chance)
        voter: Ints = rng.integers(self.n_voters, size=row.size)
        tiers = self._tiers(self.utilities(x)[row, voter], self.menus.members[menu])
        return MenuDraws(x, MenuVotes(row, menu, tiers, np.ones(row.size), chance[row, menu]))

    def _tiers(self, utilities: Floats, members: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> Tiers:
        """Places (..., K) on a menu (..., K) by utility, -1 off it; all losers second where only the winner is told."""
        above = (utilities[..., None, :] > utilities[..., :, None]) & members[..., None, :]
        places = above.sum(axis=-1)
        told = np.minimum(places, 1) if self.feedback == "winners" else places
        return np.where(members, told, OUTSIDE).astype(np.int16)


def _root_mean_square(values: Floats) -> float:
    return float(np.sqrt((values**2).mean()))
