"""The fitted contextual Davidson model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.learners.archive import pack
from app.learners.davidson.categories import Categories
from app.learners.davidson.levels import LinearLevels
from app.learners.davidson.pairs import PairEffects
from app.learners.davidson.utilities import LinearUtilities
from app.learners.trees import Forest
from app.stats.scaling import Scaling
from app.stats.types import Covariates, Floats, Ints

KIND = "davidson"
PAIRS_AT_ONCE = 8_192
"""Pairs put together at a time: what a core's cache holds."""
LARGEST_LOGIT = 300.0
"""Up to this size powers of e and their products stay far from the ends of double precision."""


@dataclass(frozen=True, slots=True)
class DavidsonModel:
    """P(c | x, j, k) ∝ exp((w1_c - w2_c) D/2 + T_c(x) + v_cj + v_ck), D = u_j(x) - u_k(x) + b + g_jk(x) + βᵀ margins.

    A judge that is silent on a pair adds nothing there.

    Parameters
    ----------
    scaling : of the covariates, for the linear parts.
    categories : slopes and free categories.
    utilities, utility_trees : the two parts of u (K boosters).
    pairs : g.
    levels, level_trees : the two parts of T (F boosters), and v.
    """

    scaling: Scaling
    categories: Categories
    utilities: LinearUtilities
    utility_trees: Forest
    pairs: PairEffects
    levels: LinearLevels
    level_trees: Forest

    def probabilities(self, x: Covariates) -> Floats:
        """(u, K, K, C) category probabilities of every ordered pair; the diagonal carries no meaning."""
        return self.probabilities_with(x, self.tree_scores(x.x))

    def tree_scores(self, x: Floats) -> Floats:
        """(u, K + F) scores by the trees of utilities and of levels."""
        return np.concatenate([self.utility_trees.all_scores(x), self.level_trees.all_scores(x)], axis=1)

    def probabilities_with(self, x: Covariates, scores: Floats) -> Floats:
        """What `probabilities` says, given the trees' scores (u, K + F), which cost a tenth by the thousand."""
        design, size = self.scaling.design(x.x), len(self.utilities.theta)
        utility = design @ self.utilities.theta.T + scores[:, :size]
        level = design @ self.levels.tau.T + scores[:, size:]
        found = np.empty((self.categories.n_categories, len(x), size, size))
        alike = self.levels.items[:, :, None] + self.levels.items[:, None, :]
        raised = np.exp(np.minimum(alike, LARGEST_LOGIT))
        step = max(1, PAIRS_AT_ONCE // size**2)
        for rows in (slice(start, start + step) for start in range(0, len(x), step)):
            difference = self.pairs.everywhere(design[rows])
            if x.margins is not None:
                heard: Floats = np.nan_to_num(x.margins[rows]).astype(np.float64)
                difference += heard @ self.utilities.judges
            difference += (utility[rows] + self.utilities.position)[:, :, None]
            difference -= utility[rows, None, :]
            if largest_logit(difference, level[rows], alike) > LARGEST_LOGIT:
                levels = [level[rows, f, None, None] + each for f, each in enumerate(alike)]
                found[:, rows] = np.moveaxis(self._shares(difference, levels), -1, 0)
            else:
                self.categories.raised(difference, np.exp(level[rows]), raised, out=found[:, rows])
        return np.moveaxis(found, 0, -1)

    def probabilities_at(self, x: Covariates, left: Ints, right: Ints) -> Floats:
        """(m, C) for one ordered pair per covariate row."""
        design = self.scaling.design(x.x)
        difference = self._utility_at(x.x, design, left) - self._utility_at(x.x, design, right)
        difference += self.utilities.position + self.pairs.at(design, left, right)
        difference += np.nan_to_num(x.judged(np.arange(left.size), left, right)) @ self.utilities.judges
        level = design @ self.levels.tau.T + self.level_trees.all_scores(x.x)
        level += (self.levels.items[:, left] + self.levels.items[:, right]).T
        return self._shares(difference, list(level.T))

    def to_bytes(self) -> bytes:
        """The model as bytes that `app.learners.load_model` reads back."""
        header = {
            "kind": KIND,
            "position": self.utilities.position,
            "utility_trees": self.utility_trees.texts,
            "level_trees": self.level_trees.texts,
        }
        arrays = {
            "mean": self.scaling.mean,
            "scale": self.scaling.scale,
            "slope": self.categories.slope,
            "free": self.categories.free,
            "theta": self.utilities.theta,
            "judges": self.utilities.judges,
            "constants": self.utilities.levels,
            "gamma": self.pairs.gamma,
            "tau": self.levels.tau,
            "items": self.levels.items,
        }
        return pack(header, arrays)

    def _utility_at(self, x: Floats, design: Floats, item: Ints) -> Floats:
        utility: Floats = np.einsum("mf,mf->m", design, self.utilities.theta[item])
        for index in np.unique(item):
            rows = np.flatnonzero(item == index)
            utility[rows] += self.utility_trees.scores(int(index), x[rows])
        return utility

    def _shares(self, difference: Floats, levels: list[Floats]) -> Floats:
        """Softmax over the categories, which become the last axis."""
        logits = np.empty((self.categories.n_categories, *difference.shape))
        np.multiply.outer(self.categories.slope, difference, out=logits)
        for category, level in zip(self.categories.free, levels, strict=True):
            logits[category] += level
        logits -= logits.max(axis=0)
        np.exp(logits, out=logits)
        logits /= logits.sum(axis=0)
        return np.ascontiguousarray(np.moveaxis(logits, 0, -1))


def largest_logit(difference: Floats, level: Floats, items: Floats) -> float:
    """A bound on the size of the logits of D (..., K, K), NaN where one is."""
    size = float(np.abs(level).max(initial=0.0) + np.abs(items).max(initial=0.0))
    return max(float(difference.max(initial=0.0)), -float(difference.min(initial=0.0))) + size


def read(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> DavidsonModel:
    """The model that `DavidsonModel.to_bytes` wrote."""
    utilities = LinearUtilities(arrays["theta"], header["position"], arrays["judges"], arrays["constants"])
    return DavidsonModel(
        Scaling(arrays["mean"], arrays["scale"]),
        Categories(arrays["slope"], arrays["free"]),
        utilities,
        Forest(header["utility_trees"]),
        PairEffects(arrays["gamma"], len(utilities.theta)),
        LinearLevels(arrays["tau"], arrays["items"]),
        Forest(header["level_trees"]),
    )
