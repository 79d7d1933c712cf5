"""Stage (b), and the trees of stage (d): losses of boosters' scores, for the loop that grows them in step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.learners.davidson.cells import Appearances, Cells, sums
from app.learners.davidson.levels import Ballot
from app.learners.davidson.preference import Preference
from app.stats.types import Floats, Ints


@dataclass(frozen=True, slots=True)
class UtilityObjective:
    """The graded votes' loss in one score per appearance, added to the item's utility.

    Parameters
    ----------
    preference, appearances, cells : the graded votes.
    difference : (m,) D before any tree.
    levels : (G,) of the graded categories.
    """

    preference: Preference
    appearances: Appearances
    cells: Cells
    difference: Floats
    levels: Floats
    weight: Floats

    def newton(self, scores: Floats) -> tuple[Floats, Floats]:
        """(s,) gradient and Hessian."""
        at = self.preference.derivatives(self._difference(scores), self.levels, self.weight)
        return self.appearances.spread(at.slope), self.appearances.collect(at.curve)

    def held_loss(self, scores: Floats) -> float:
        """The loss of the votes held out."""
        return self.preference.derivatives(self._difference(scores), self.levels, self.cells.held).value

    def _difference(self, scores: Floats) -> Floats:
        return self.difference + self.appearances.difference(scores)


@dataclass(frozen=True, slots=True)
class LevelObjective:
    """The votes' loss in one score per free category and pattern, added to the category's level.

    Parameters
    ----------
    ballot : the votes.
    levels : (F, m) before any tree.
    place : (m,) each cell's row among the `width` patterns that the trees grow on.
    """

    ballot: Ballot
    levels: Floats
    place: Ints
    width: int
    weight: Floats

    def newton(self, scores: Floats) -> tuple[Floats, Floats]:
        """(F * width,) gradient and Hessian, category by category."""
        _, slope, curve = self.ballot.derivatives(self._levels(scores), self.weight)
        return self._collect(slope), self._collect(curve)

    def held_loss(self, scores: Floats) -> float:
        """The loss of the votes held out."""
        return self.ballot.loss(self._levels(scores), self.ballot.cells.held)

    def _levels(self, scores: Floats) -> Floats:
        return self.levels + scores.reshape(-1, self.width)[:, self.place]

    def _collect(self, values: Floats) -> Floats:
        return np.concatenate([sums(self.place, row, self.width) for row in values])
