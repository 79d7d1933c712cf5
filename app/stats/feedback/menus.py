"""Menus, their pairs, and votes on them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Protocol

import numpy as np

from app.stats.errors import InvalidInput
from app.stats.feedback.partitions import OUTSIDE, Tiers
from app.stats.types import Bools, Covariates, Floats, Ints


@dataclass(frozen=True)
class Menus:
    """The Q menus of a board. A cell is a menu and a pair j < k on it; a pair's cells are what its payoff is made of.

    Parameters
    ----------
    members : (Q, K) which items each menu holds, two or more.
    """

    members: Bools

    def __post_init__(self) -> None:
        if self.members.ndim != 2 or (self.members.sum(axis=1) < 2).any():
            raise InvalidInput("a menu has two or more items")

    @property
    def n_items(self) -> int:
        """K."""
        return int(self.members.shape[1])

    @cached_property
    def cells(self) -> tuple[Ints, Ints, Ints]:
        """Menu, first and second item (T,) of every cell, menu by menu."""
        first, second = np.triu_indices(self.n_items, 1)
        menu, pair = np.nonzero(self.members[:, first] & self.members[:, second])
        return menu, first[pair].astype(np.int64), second[pair].astype(np.int64)

    @cached_property
    def pair_of_cell(self) -> Ints:
        """(T,) place of each cell's pair in `pairs`."""
        _, first, second = self.cells
        place = np.zeros((self.n_items, self.n_items), dtype=np.int64)
        place[self.pairs] = np.arange(self.pairs[0].size)
        return place[first, second]

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """First and second item (P,) of all pairs j < k, P = K (K - 1) / 2."""
        first, second = np.triu_indices(self.n_items, 1)
        return first.astype(np.int64), second.astype(np.int64)

    @cached_property
    def shown(self) -> Bools:
        """(P,) pairs that some menu holds; the payoff of the others is 0."""
        shown: Bools = np.bincount(self.pair_of_cell, minlength=self.pairs[0].size) > 0
        return shown

    @property
    def wide(self) -> bool:
        """Whether any menu holds more than two items."""
        return bool((self.members.sum(axis=1) > 2).any())

    def matrix(self, values: Floats) -> Floats:
        """(n, K, K) skew-symmetric matrices of values (n, P) of the pairs."""
        return skew(values, self.n_items)

    def values(self, matrices: Floats) -> Floats:
        """(n, P) of the pairs of matrices (n, K, K)."""
        values: Floats = matrices[:, self.pairs[0], self.pairs[1]]
        return values


def skew(values: Floats, n_items: int) -> Floats:
    """(n, K, K) skew-symmetric matrices of values (n, P) of all pairs j < k, row by row."""
    first, second = np.triu_indices(n_items, 1)
    full = np.zeros((len(values), n_items, n_items))
    full[:, first, second], full[:, second, first] = values, -values
    return full


def all_menus(n_items: int, size: int) -> Menus:
    """All menus of `size` of K items, in lexicographic order."""
    chosen = np.array(list(combinations(range(n_items), size)), dtype=np.int64).reshape(-1, size)
    members = np.zeros((len(chosen), n_items), dtype=np.bool_)
    np.put_along_axis(members, chosen, True, axis=1)
    return Menus(members)


def menus_of(tiers: Tiers) -> tuple[Menus, Ints]:
    """The distinct menus of votes with these tiers (m, K), and the menu (m,) of each."""
    members, menu = np.unique(tiers != OUTSIDE, axis=0, return_inverse=True)
    return Menus(members), menu.ravel().astype(np.int64)


@dataclass(frozen=True, slots=True)
class MenuVotes:
    """Votes on menus (all arrays of length m).

    Parameters
    ----------
    row : the estimator's row, 0 .. n-1.
    menu : the menu, 0 .. Q-1.
    tiers : (m, K) the ordered partition, 0 the best, -1 off the menu.
    weight : the vote's share within its row: 1 / (votes on this menu in its offer) / (offers of the row).
    propensity : P(a vote on this menu in its offer | x) as used, in (0, 1].
    """

    row: Ints
    menu: Ints
    tiers: Tiers
    weight: Floats
    propensity: Floats

    def __len__(self) -> int:
        return int(self.row.size)

    def take(self, index: Ints | Bools) -> MenuVotes:
        """The votes named by `index` (positions or a mask)."""
        return MenuVotes(
            self.row[index], self.menu[index], self.tiers[index], self.weight[index], self.propensity[index]
        )


@dataclass(frozen=True, slots=True)
class MenuSample:
    """Everything a payoff estimator reads but the nuisance models.

    Parameters
    ----------
    menus : of the board.
    votes : on them.
    fold : (n,) the fold whose models, fitted without it, score the row.
    pattern : (n,) index of the row's covariates among the u distinct ones.
    context : (n,) cluster label of each row.
    """

    menus: Menus
    votes: MenuVotes
    fold: Ints
    pattern: Ints
    context: Ints

    @property
    def n_rows(self) -> int:
        return int(self.fold.size)


class MenuModel(Protocol):
    """A fitted mu^m_jk(x) = E[Z^m_jk | x]."""

    def margins(self, x: Covariates, menus: Menus) -> Floats:
        """(u, T) in [-1, 1] at every cell."""


class MenuLearner(Protocol):
    """Fits mu^m on votes."""

    def fit(self, x: Covariates, sample: MenuSample, chosen: Bools, *, seed: int) -> MenuModel:
        """Fit to the chosen votes (m,); never fails for want of data."""


def estimated_propensities(sample: MenuSample, *, prior: float = 1.0) -> Floats:
    """(m,) how often each vote's menu was voted on per row, drawn a little to the menus' mean.

    Parameters
    ----------
    sample : its votes' own propensities are not read.
    prior : votes that the mean counts for.
    """
    count = np.bincount(sample.votes.menu, sample.votes.weight, len(sample.menus.members))
    mean = count.mean()
    rate = (count + prior) / (sample.n_rows + prior * sample.n_rows / max(mean, 1e-12))
    used: Floats = np.clip(rate, 1e-12, 1.0)[sample.votes.menu]
    return used
