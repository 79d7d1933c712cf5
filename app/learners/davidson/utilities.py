"""Stage (a): linear utilities, the position's intercept and the judges' slopes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from app.learners.davidson.cells import Appearances, Cells
from app.learners.davidson.preference import Derivatives, Preference
from app.stats.ridge import Family, Fit
from app.stats.types import Floats

_POSITION_PRECISION = 4.0
_JUDGE_PRECISION = 1.0
_LEVEL_PRECISION = 1.0


@dataclass(frozen=True, slots=True)
class LinearUtilities:
    """Parameters of D = u_j(x) - u_k(x) + b + βᵀ margins, u_j(x) = θ_jᵀ (1, x).

    Parameters
    ----------
    theta : (K, 1 + d) the intercept first.
    position : b, the first place's advantage.
    judges : (q,) β.
    levels : (G,) constants of the graded categories, 0 at the anchors.
    """

    theta: Floats
    position: float
    judges: Floats
    levels: Floats


@dataclass(frozen=True, slots=True)
class UtilityLikelihood:
    """The graded votes' negative log-likelihood in (θ, b, β, free levels), flat in this order.

    Parameters
    ----------
    blocks : per item the (rows, 1 + d) covariates under which it appears, a leading 1, without gaps.
    margins : (m, q) judges' margins of each cell.
    appearances : of the cells, graded ones only.
    preference : the categories' likelihood given D.
    weight : (m,) of each cell.
    offset : (m,) what each cell's D has besides.
    """

    blocks: tuple[Floats, ...]
    margins: Floats
    appearances: Appearances
    preference: Preference
    weight: Floats
    offset: Floats

    @classmethod
    def of(cls, design: Floats, cells: Cells, appearances: Appearances, *, preference: Preference) -> UtilityLikelihood:
        """For the cells' whole weight; `design` is (u, 1 + d)."""
        rows = np.split(appearances.pattern, appearances.bounds[1:-1])
        blocks, nothing = tuple(design[row] for row in rows), np.zeros(len(cells))
        return cls(blocks, cells.margins, appearances, preference, cells.weight, nothing)

    def given(self, judges: Floats) -> UtilityLikelihood:
        """With the judges' slopes (q,) no longer free."""
        return replace(self, margins=self.margins[:, :0], offset=self.offset + self.margins @ judges)

    @property
    def shape(self) -> tuple[int, int]:
        """K and 1 + d."""
        return len(self.blocks), int(self.blocks[0].shape[1])

    @property
    def size(self) -> int:
        """The number of parameters."""
        movable = int(np.count_nonzero(self.preference.movable))
        return self.shape[0] * self.shape[1] + 1 + int(self.margins.shape[1]) + movable

    def unpack(self, w: Floats) -> LinearUtilities:
        """The flat parameters by name."""
        count = self.shape[0] * self.shape[1]
        judges = w[count + 1 : count + 1 + self.margins.shape[1]]
        levels = np.zeros(self.preference.movable.size)
        levels[self.preference.movable] = w[count + 1 + judges.size :]
        return LinearUtilities(w[:count].reshape(self.shape), float(w[count]), judges, levels)

    def differences(self, utilities: LinearUtilities) -> Floats:
        """(m,) D of each cell."""
        rows = [block @ theta for block, theta in zip(self.blocks, utilities.theta, strict=True)]
        fixed = utilities.position + self.margins @ utilities.judges + self.offset
        return self.appearances.difference(np.concatenate(rows)) + fixed

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        """The value and its gradient."""
        at = self._derivatives(w)
        rows = np.split(self.appearances.spread(at.slope), self.appearances.bounds[1:-1])
        theta = [row @ block for block, row in zip(self.blocks, rows, strict=True)]
        free = at.level_slope[self.preference.movable]
        return at.value, np.concatenate([*theta, [at.slope.sum()], at.slope @ self.margins, free])

    def curvature(self, w: Floats) -> Floats:
        """The diagonal of the Hessian."""
        at = self._derivatives(w)
        rows = np.split(self.appearances.collect(at.curve), self.appearances.bounds[1:-1])
        theta = [row @ block**2 for block, row in zip(self.blocks, rows, strict=True)]
        free = at.level_curve[self.preference.movable]
        return np.concatenate([*theta, [at.curve.sum()], at.curve @ self.margins**2, free])

    def families(self) -> list[Family]:
        """The intercepts, and the slopes feature by feature."""
        index = np.arange(self.shape[0] * self.shape[1]).reshape(self.shape).T
        features = max(self.shape[1] - 1, 1)
        return [Family(index[:1], 0.5, 9.0), Family(index[1:], 0.5 / features, 4.0)]

    def start(self) -> Fit:
        """Nothing known: zeros, under the precisions believed beforehand."""
        precision = np.full(self.size, _LEVEL_PRECISION)
        for family in self.families():
            precision[family.index] = 1 / family.guess
        count = self.shape[0] * self.shape[1]
        precision[count] = _POSITION_PRECISION
        precision[count + 1 : count + 1 + self.margins.shape[1]] = _JUDGE_PRECISION
        return Fit(np.zeros(self.size), precision)

    def _derivatives(self, w: Floats) -> Derivatives:
        utilities = self.unpack(w)
        return self.preference.derivatives(self.differences(utilities), utilities.levels, self.weight)
