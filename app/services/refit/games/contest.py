"""Who plays on a board, and how outcome probabilities of ordered pairs become payoffs (NashEval, Definition 1)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.stats.debias.support import Support, support_of
from app.stats.types import Floats, Ints, Rule, Sample


def favours(rule: Rule) -> Floats:
    """(C,) 1 for a category in favour of the left item, -1 of the right one, 0 of neither."""
    favour: Floats = np.sign(rule.first - rule.second)
    return favour


def decided(rule: Rule) -> Rule:
    """Categories credited wholly to the item in favour, by halves without one: shares are (1 + payoff) / 2."""
    favour = favours(rule)
    return Rule((1.0 + favour) / 2.0, (1.0 - favour) / 2.0)


@dataclass(frozen=True)
class Contest:
    """Players and their payoffs; P = k (k - 1) / 2 pairs of the k players, the first before the second.

    Parameters
    ----------
    players : (k,) positions among the board's items.
    ahead : (P,) weight of the order in which a pair's first item is shown first, ½ where both orders are; the other
        order has the rest.
    favour : (C,) see `favours`.
    """

    players: Ints
    ahead: Floats
    favour: Floats

    @classmethod
    def of(cls, sample: Sample, support: Support) -> Contest:
        """The items that chains of votes link."""
        players = np.flatnonzero(support.every.component)
        first, second = np.triu_indices(players.size, 1)
        ahead = support.every.order[players[first], players[second]]
        return cls(players, ahead, favours(sample.rule))

    @property
    def size(self) -> int:
        """k."""
        return int(self.players.size)

    @cached_property
    def pairs(self) -> tuple[Ints, Ints]:
        """(P,) positions of the first and the second item of each pair among the board's items."""
        first, second = np.triu_indices(self.players.size, 1)
        return self.players[first], self.players[second]

    def leads(self, mu: Floats) -> Floats:
        """(u, K, K) left better less right better, of outcome probabilities (u, K, K, C)."""
        leads: Floats = mu @ self.favour
        return leads

    def payoffs(self, leads: Floats) -> Floats:
        """(u, P) payoffs of leads (u, K, K), over the orders that are shown."""
        first, second = self.pairs
        payoffs: Floats = self.ahead * leads[:, first, second] - (1.0 - self.ahead) * leads[:, second, first]
        return payoffs

    def numbers(self, n_items: int) -> Ints:
        """(K, K) which pair each ordered pair of the board's items is; -1 where one of them does not play."""
        number = np.full((n_items, n_items), -1, dtype=np.int64)
        first, second = self.pairs
        number[first, second] = number[second, first] = np.arange(first.size)
        return number


def linked(sample: Sample) -> tuple[Support, Contest]:
    """What the votes support, and who plays."""
    support = support_of(sample)
    return support, Contest.of(sample, support)
