"""Aggregators: a pair's payoff from its margins on all menus (NashEval, Definition 1 and Appendix F.2)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.errors import InvalidInput
from app.stats.feedback.menus import Menus
from app.stats.types import Floats


@dataclass(frozen=True)
class Aggregator:
    """f_jk({u_m}) = Σ w_m u_m, or h^-1(Σ w_m h(u_m)) with h(u) = u + u^3.

    Both are odd and idempotent; the cubic one counts decided menus for more.

    Parameters
    ----------
    menus : of the board.
    weights : (Q,) weights of the menus, not all 0 on any pair that is shown; they need not sum to 1.
    cubic : whether margins are averaged on the scale of h.
    """

    menus: Menus
    weights: Floats
    cubic: bool = False

    def __post_init__(self) -> None:
        fits = self.weights.shape == (len(self.menus.members),)
        if not fits or not np.isfinite(self.weights).all() or self.weights.min(initial=0.0) < 0:
            raise InvalidInput(f"weights of shape {self.weights.shape}, expected one non-negative a menu")
        if (self._sum(self.weights[self.menus.cells[0]][None])[0][self.menus.shown] <= 0).any():
            raise InvalidInput("the menus of a pair all weigh 0")

    @property
    def shares(self) -> Floats:
        """(T,) w of each cell, of sum 1 over the cells of a pair."""
        weight = self.weights[self.menus.cells[0]]
        shares: Floats = weight / self._sum(weight[None])[0][self.menus.pair_of_cell]
        return shares

    def payoffs(self, margins: Floats) -> Floats:
        """(n, P) f of margins (n, T)."""
        if not self.cubic:
            return self._sum(margins * self.shares)
        return _uncubed(self._sum((margins + margins**3) * self.shares))

    def slopes(self, margins: Floats) -> Floats:
        """(n, T) df/du_m = w_m, or w_m h'(u_m) / h'(f)."""
        if not self.cubic:
            return np.broadcast_to(self.shares, margins.shape)
        middle = self.payoffs(margins)[:, self.menus.pair_of_cell]
        slopes: Floats = self.shares * (1.0 + 3.0 * margins**2) / (1.0 + 3.0 * middle**2)
        return slopes

    def total_slopes(self, margins: Floats) -> Floats:
        """(n, P) Σ_m df/du_m, 1 where f is linear."""
        return self._sum(self.slopes(margins))

    def _sum(self, values: Floats) -> Floats:
        """(n, P) sums over each pair's cells of values (n, T)."""
        return totals(self.menus, values)


def totals(menus: Menus, values: Floats) -> Floats:
    """(n, P) sums over each pair's cells of values (n, T)."""
    found = np.zeros((len(values), menus.pairs[0].size))
    order = np.argsort(menus.pair_of_cell, kind="stable")
    if order.size:
        pair = menus.pair_of_cell[order]
        starts = np.flatnonzero(np.diff(pair, prepend=-1))
        found[:, pair[starts]] = np.add.reduceat(values[:, order], starts, axis=1)
    return found


def uniform(menus: Menus) -> Aggregator:
    """All menus of a pair count alike."""
    return Aggregator(menus, np.ones(len(menus.members)))


def _uncubed(value: Floats) -> Floats:
    """u with u + u^3 = value (Cardano, in hyperbolic form: no cancellation)."""
    scale = 2.0 / np.sqrt(3.0)
    root: Floats = scale * np.sinh(np.arcsinh(1.5 * np.sqrt(3.0) * value) / 3.0)
    return root
