"""Outcome models of votes on menus: the learners of pairs, told what else is on the menu."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.feedback.menus import Menus, MenuSample
from app.stats.feedback.partitions import verdicts
from app.stats.types import Bools, Covariates, Floats, Ints, OutcomeLearner, OutcomeModel, Rule, Training

AT_ONCE = 30_000
"""Cells of contexts that are looked at together."""
VERDICTS = Rule(np.array([1.0, 0.0, 0.5]), np.array([0.0, 1.0, 0.5]))
"""Better, worse, no verdict."""


@dataclass(frozen=True, slots=True)
class MenuMargins:
    """mu^m_jk(x) = P(better) - P(worse) at j < k, and minus that at k > j.

    Parameters
    ----------
    model : of ordered pairs.
    wide : whether the covariates say what is on the menu.
    """

    model: OutcomeModel
    wide: bool

    def margins(self, x: Covariates, menus: Menus) -> Floats:
        """(u, T) in [-1, 1] at every cell."""
        menu = menus.cells[0]
        found = np.empty((len(x), menu.size))
        large = np.bincount(menu, minlength=len(menus.members)) > menus.n_items
        for each in np.flatnonzero(large):
            self._whole(x, menus, np.flatnonzero(menu == each), found)
        cells = np.flatnonzero(~large[menu])
        step = max(1, AT_ONCE // max(cells.size, 1))
        for start in range(0, len(x) if cells.size else 0, step):
            some = np.arange(start, min(start + step, len(x)))
            found[np.ix_(some, cells)] = self._single(x, some, menus, cells)
        return found

    def _whole(self, x: Covariates, menus: Menus, cells: Ints, found: Floats) -> None:
        """All pairs of one menu together: what a model makes of each item it makes once."""
        menu, first, second = (each[cells] for each in menus.cells)
        step = max(1, AT_ONCE // menus.n_items**2)
        for start in range(0, len(x), step):
            some = np.arange(start, min(start + step, len(x)))
            members = np.tile(menus.members[menu[0]], (some.size, 1)) if self.wide else None
            mu = self.model.probabilities(described(x.take(some), members))[:, first, second]
            found[np.ix_(some, cells)] = mu[..., 0] - mu[..., 1]

    def _single(self, x: Covariates, some: Ints, menus: Menus, cells: Ints) -> Floats:
        """Cells of a few contexts in one call: a call costs as much as many rows."""
        menu, first, second = (np.tile(each[cells], some.size) for each in menus.cells)
        seen = described(x.take(np.repeat(some, cells.size)), menus.members[menu] if self.wide else None)
        mu = self.model.probabilities_at(seen, first, second)
        return (mu[:, 0] - mu[:, 1]).reshape(some.size, -1)

    def to_bytes(self) -> bytes:
        """The model of ordered pairs as bytes; `wide` follows from the menus."""
        return self.model.to_bytes()


@dataclass(frozen=True, slots=True)
class MenuPairs:
    """Fits an outcome learner to the pairs of all votes, each once, as (j, k) with j < k: a menu has no sides.

    Both orders of each pair would leave trees that split on one thing at a time without a first split: on either side
    of it, the two orders' gradients cancel.

    What a pair's verdict depends on beside the pair, such as a third item that may win instead, is told by K columns
    of membership; boards of pairs alone do without.

    Parameters
    ----------
    learner : of ordered pairs.
    """

    learner: OutcomeLearner

    def fit(self, x: Covariates, sample: MenuSample, chosen: Bools, *, seed: int) -> MenuMargins:
        """Fit to the chosen votes (m,)."""
        return MenuMargins(self.learner.fit(training(x, sample, chosen), seed=seed), sample.menus.wide)


def training(x: Covariates, sample: MenuSample, chosen: Bools) -> Training:
    """The pairs of the chosen votes as votes on ordered pairs."""
    votes, menus = sample.votes.take(chosen), sample.menus
    first, second = menus.pairs
    vote, pair = np.nonzero(menus.members[votes.menu][:, first] & menus.members[votes.menu][:, second])
    said = verdicts(votes.tiers, first, second)[vote, pair]
    outcome = np.where(said > 0, 0, np.where(said < 0, 1, 2))
    seen, pattern = _patterns(x, sample, votes.row, votes.menu)
    return Training(
        x=seen,
        pattern=pattern[vote],
        left=first[pair],
        right=second[pair],
        outcome=outcome,
        weight=np.ones(vote.size),
        group=sample.context[votes.row][vote],
        n_items=menus.n_items,
        rule=VERDICTS,
    )


def _patterns(x: Covariates, sample: MenuSample, row: Ints, menu: Ints) -> tuple[Covariates, Ints]:
    """Distinct covariates of votes, and which of them each vote has."""
    pattern = sample.pattern[row]
    if not sample.menus.wide:
        return x, pattern
    size = len(sample.menus.members)
    distinct, place = np.unique(pattern * size + menu, return_inverse=True)
    return described(x.take(distinct // size), sample.menus.members[distinct % size]), place.ravel()


def described(x: Covariates, members: Bools | None) -> Covariates:
    """Covariates with columns (u, K) of what is on the menu; as they are without."""
    if members is None:
        return x
    return Covariates(np.hstack([x.x, members.astype(np.float64)]), x.margins)
