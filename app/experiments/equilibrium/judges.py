"""Judges that weigh score and price each in their own way, on a complete table of scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.experiments.scores import ScoreTable
from app.stats.feedback import Menus, MenuVotes, all_menus
from app.stats.types import Bools, Floats, Ints

FRUGALITY = (0.0, 0.4, 1.5)
"""What each judge takes off for the dearest item, in scores; they are drawn evenly."""
PAIRS_SHOWN = 8
"""Pairs of items that each question is asked about."""


@dataclass(frozen=True)
class Panel:
    """Three judges, each transitive: judge h prefers the item of larger score_j - w_h price_j, or has no verdict.

    Parameters
    ----------
    table : scores of K items on Q questions.
    prices : (K,) in [0, 1].
    """

    table: ScoreTable
    prices: Floats

    @property
    def menus(self) -> Menus:
        """All pairs."""
        return all_menus(len(self.table.items), 2)

    def payoffs(self, questions: Ints) -> Floats:
        """(n, K, K) exact mean verdicts of the judges."""
        worth = self._worth(questions)
        payoffs: Floats = np.sign(worth[..., :, None] - worth[..., None, :]).mean(axis=0)
        return payoffs

    def draw(self, questions: Ints, *, seed: int) -> MenuVotes:
        """A question shows some pairs, all alike likely, each to a judge drawn for it."""
        rng = np.random.default_rng([seed, 4])
        menus, n = self.menus, questions.size
        count = len(menus.members)
        shown = min(PAIRS_SHOWN, count)
        menu = rng.random((n, count)).argsort(axis=1)[:, :shown].ravel()
        row = np.repeat(np.arange(n), shown)
        worth = self._worth(questions)[rng.integers(len(FRUGALITY), size=row.size), row]
        return MenuVotes(
            row, menu, _tiers(worth, menus.members[menu]), np.ones(row.size), np.full(row.size, shown / count)
        )

    def _worth(self, questions: Ints) -> Floats:
        """(judges, n, K)."""
        taken = np.array(FRUGALITY)[:, None, None] * self.prices
        worth: Floats = self.table.scores[questions] - taken
        return worth


def _tiers(worth: Floats, members: Bools) -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    above = (worth[:, None, :] > worth[:, :, None]) & members[:, None, :]
    return np.where(members, above.sum(axis=-1), -1).astype(np.int16)
