"""Stage (d): the free categories' levels T_c(x) and the items' symmetric effects on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.learners.davidson.categories import Categories
from app.learners.davidson.cells import Cells, shares, sums
from app.stats.ridge import Family, Fit
from app.stats.types import Floats, Ints

_LEVEL_PRECISION = 1.0
_SCAFFOLD_VARIANCE = 0.1


@dataclass(frozen=True, slots=True)
class LinearLevels:
    """T_c(x) = τ_cᵀ (1, x), to which an ordered pair adds v_cj + v_ck.

    Parameters
    ----------
    tau : (F, 1 + d).
    items : (F, K) v.
    """

    tau: Floats
    items: Floats


@dataclass(frozen=True, slots=True)
class Ballot:
    """P(c) ∝ exp(slope_c D + level_c), D known, levels of the free categories sought.

    Parameters
    ----------
    categories : slopes and free categories.
    cells : m cells.
    difference : (m,) D.
    """

    categories: Categories
    cells: Cells
    difference: Floats

    def loss(self, levels: Floats, weight: Floats) -> float:
        """Weighted negative log-likelihood at levels (F, m)."""
        logits = self._logits(levels)
        chosen = logits[self.cells.outcome, np.arange(len(self.cells))]
        return float(weight @ (shares(logits)[1] - chosen))

    def derivatives(self, levels: Floats, weight: Floats) -> tuple[float, Floats, Floats]:
        """The loss, its (F, m) gradient and diagonal Hessian in the levels."""
        logits = self._logits(levels)
        found, total = shares(logits)
        chosen, free = logits[self.cells.outcome, np.arange(len(self.cells))], found[self.categories.free]
        observed = self.cells.outcome == self.categories.free[:, None]
        return float(weight @ (total - chosen)), weight * (free - observed), weight * free * (1 - free)

    def _logits(self, levels: Floats) -> Floats:
        logits = np.multiply.outer(self.categories.slope, self.difference)
        logits[self.categories.free] += levels
        return logits


@dataclass(frozen=True, slots=True)
class LevelLikelihood:
    """The votes' negative log-likelihood in (τ, v), flat in this order.

    Parameters
    ----------
    design : (u, 1 + d).
    ballot : the cells and what is known of them.
    n_items : K.
    weight : (m,) of each cell.
    """

    design: Floats
    ballot: Ballot
    n_items: int
    weight: Floats

    def unpack(self, w: Floats) -> LinearLevels:
        """The flat parameters by name."""
        free, width = self.ballot.categories.free.size, self.design.shape[1]
        return LinearLevels(w[: free * width].reshape(free, width), w[free * width :].reshape(free, self.n_items))

    def levels(self, linear: LinearLevels) -> Floats:
        """(F, m) level of each free category in each cell."""
        cells = self.ballot.cells
        rows = linear.tau @ self.design.T
        return rows[:, cells.pattern] + linear.items[:, cells.left] + linear.items[:, cells.right]

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """The value and its gradient."""
        value, slope, _ = self.ballot.derivatives(self.levels(self.unpack(w)), self.weight)
        return value, self._collect(slope, self.design)

    def curvature(self, w: Floats) -> Floats:
        """The diagonal of the Hessian."""
        _, _, curve = self.ballot.derivatives(self.levels(self.unpack(w)), self.weight)
        return self._collect(curve, self.design**2)

    def families(self) -> list[Family]:
        """Per free category the covariates' slopes, and the items' effects."""
        free, width = self.ballot.categories.free.size, self.design.shape[1]
        tau = np.arange(free * width).reshape(free, width)
        items = free * width + np.arange(free * self.n_items).reshape(free, self.n_items)
        return [Family(tau[:, 1:], _SCAFFOLD_VARIANCE / max(width - 1, 1), 4.0), Family(items, _SCAFFOLD_VARIANCE, 4.0)]

    def start(self) -> Fit:
        """Nothing known: zeros, under the precisions believed beforehand."""
        free, width = self.ballot.categories.free.size, self.design.shape[1]
        precision = np.full(free * (width + self.n_items), _LEVEL_PRECISION)
        for family in self.families():
            precision[family.index] = 1 / family.guess
        return Fit(np.zeros(precision.size), precision)

    def _collect(self, slope: Floats, design: Floats) -> Floats:
        cells = self.ballot.cells
        patterns = _sums(slope, cells.pattern, len(design))
        items = _sums(slope, cells.left, self.n_items) + _sums(slope, cells.right, self.n_items)
        return np.concatenate([(patterns @ design).ravel(), items.ravel()])


def _sums(values: Floats, place: Ints, size: int) -> Floats:
    """(F, size) sums of the rows of values (F, m) by place (m,)."""
    return np.stack([sums(place, row, size) for row in values])
