"""How an outcome category leans on the difference of utilities, read off the board's weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.types import Bools, Floats, Ints, Rule


@dataclass(frozen=True, slots=True)
class Categories:
    """Category c has logit slope_c D + level_c, level 0 for the two anchors.

    Parameters
    ----------
    slope : (C,) half the weights' difference, (w1 - w2) / 2: ½ for a left vote, -½ for a right one, 0 for a tie.
    free : (F,) the categories with a level of their own; all but the first of weights (1, 0) and the first of
        weights (0, 1), so that two categories of the same weights can still differ in frequency.
    """

    slope: Floats
    free: Ints

    @classmethod
    def of(cls, rule: Rule) -> Categories:
        """The categories of a rule."""
        weights = np.stack([rule.first, rule.second], axis=1)
        anchors = [np.flatnonzero((weights == pure).all(axis=1))[:1] for pure in ([1.0, 0.0], [0.0, 1.0])]
        free = np.setdiff1d(np.arange(rule.n_categories), np.concatenate(anchors))
        return cls((rule.first - rule.second) / 2, free.astype(np.int64))

    @property
    def graded(self) -> Bools:
        """(C,) categories that say which item was better."""
        graded: Bools = self.slope != 0
        return graded

    @property
    def n_categories(self) -> int:
        return int(self.slope.size)

    def raised(self, difference: Floats, level: Floats, alike: Floats, *, out: Floats) -> None:
        """Shares (C, ..., K, K) from D (..., K, K) and the powers of levels, (..., F) of contexts and (F, ..., K, K).

        The parts of a logit are raised apart, and categories of opposite slope are each other's inverse.
        """
        done: dict[float, int] = {}
        for category, slope in enumerate(self.slope.tolist()):
            if -slope in done and slope:
                np.divide(1.0, out[done[-slope]], out=out[category])
            elif slope:
                np.exp(np.multiply(difference, slope, out=out[category]), out=out[category])
                done[slope] = category
            else:
                out[category] = 1.0
        for f, category in enumerate(self.free.tolist()):
            if self.slope[category]:
                out[category] *= alike[f]
                out[category] *= level[..., f, None, None]
            else:
                np.multiply(alike[f], level[..., f, None, None], out=out[category])
        total = out[0] + out[1]
        for each in out[2:]:
            total += each
        out *= np.divide(1.0, total, out=total)
