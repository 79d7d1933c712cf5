"""What a graded vote says about the difference D of two utilities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.learners.davidson.categories import Categories
from app.learners.davidson.cells import shares
from app.stats.types import Bools, Floats, Ints


class Derivatives(NamedTuple):
    """A weighted negative log-likelihood and its derivatives.

    Parameters
    ----------
    value : the loss.
    slope, curve : (m,) first and second derivative in each cell's D.
    level_slope, level_curve : (G,) the same in the graded categories' levels.
    """

    value: float
    slope: Floats
    curve: Floats
    level_slope: Floats
    level_curve: Floats


@dataclass(frozen=True, slots=True)
class Preference:
    """P(c | graded) ∝ exp(slope_c D + level_c) over the G graded categories.

    With left and right alone this is P(left) = 1 / (1 + exp(-D)).

    Parameters
    ----------
    slope : (G,).
    movable : (G,) whether the level is free; the anchors' stay 0.
    verdict : (m,) each cell's graded category, 0 .. G-1.
    """

    slope: Floats
    movable: Bools
    verdict: Ints

    @classmethod
    def of(cls, categories: Categories, outcome: Ints) -> Preference:
        """For cells whose outcomes are all graded."""
        graded = np.flatnonzero(categories.graded)
        return cls(categories.slope[graded], np.isin(graded, categories.free), np.searchsorted(graded, outcome))

    def derivatives(self, difference: Floats, levels: Floats, weight: Floats) -> Derivatives:
        """The weighted loss at D (m,) and levels (G,), and its derivatives."""
        logits = self._logits(difference, levels)
        found, total = shares(logits)
        chosen = logits[self.verdict, np.arange(self.verdict.size)]
        mean = self.slope @ found
        return Derivatives(
            value=float(weight @ (total - chosen)),
            slope=weight * (mean - self.slope[self.verdict]),
            curve=weight * np.maximum(self.slope**2 @ found - mean**2, 0.0),
            level_slope=found @ weight - np.bincount(self.verdict, weight, self.slope.size),
            level_curve=(found * (1 - found)) @ weight,
        )

    def _logits(self, difference: Floats, levels: Floats) -> Floats:
        return np.multiply.outer(self.slope, difference) + levels[:, None]
