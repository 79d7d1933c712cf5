"""Weighted regressions of many targets on the same covariates: trees, all with one number of rounds, or a ridge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from app.learners.trees import Forest, Ground, Nursery, Shape, least, tells_apart
from app.stats.types import Bools, Floats, Ints

SHAPE = Shape(leaves=4, hessian=20.0, ridge=5.0, rate=0.05, rounds=300, patience=30)
FOLDS = 3
LEAST_ROWS = 150
"""Rows with a weight from which a target has trees of its own."""
PENALTIES = (1.0, 10.0, 100.0, 1e3, 1e4, np.inf)


@dataclass(frozen=True, slots=True)
class Targets:
    """P targets on n rows.

    Parameters
    ----------
    x : (n, d), NaN where missing.
    value, weight : (n, P); rows of weight 0 say nothing of that target.
    part : (n,) inner folds 0 .. 2.
    """

    x: Floats
    value: Floats
    weight: Floats
    part: Ints

    @property
    def scaled(self) -> Floats:
        """(n, P) weights of mean 1 over the rows that have one."""
        total, rows = self.weight.sum(axis=0), (self.weight > 0).sum(axis=0)
        scaled: Floats = self.weight * (rows / np.where(total > 0, total, 1.0))
        return scaled

    def take(self, targets: Ints) -> Targets:
        """Some of the targets."""
        return replace(self, value=self.value[:, targets], weight=self.weight[:, targets])


@dataclass(frozen=True, slots=True)
class Squares:
    """½ weight (value - score)², the targets end to end."""

    value: Floats
    kept: Floats
    held: Floats

    def newton(self, scores: Floats) -> tuple[Floats, Floats]:
        """Gradient and Hessian of the training part."""
        return self.kept * (scores - self.value), self.kept

    def held_loss(self, scores: Floats) -> float:
        """The loss of the rows held out."""
        return float(self.held @ (self.value - scores) ** 2)


@dataclass(frozen=True, slots=True)
class Fitted:
    """Trees or a ridge for all targets, and what the inner folds predict of each other.

    Parameters
    ----------
    forest : one booster a target, some without trees.
    linear : (d + 1, P) coefficients on standardised covariates, the intercept first; 0 where trees speak.
    centre, scale : (d,) of the covariates.
    crossed : (n, P) out-of-fold predictions.
    """

    forest: Forest
    linear: Floats
    centre: Floats
    scale: Floats
    crossed: Floats

    def predict(self, x: Floats) -> Floats:
        """(u, P)."""
        predicted: Floats = self.forest.all_scores(x) + design(x, self.centre, self.scale) @ self.linear
        return predicted


def regress(targets: Targets, *, seed: int, shape: Shape = SHAPE, trees: bool = True) -> Fitted:
    """Trees for targets with rows enough, a ridge for the others; how much of either by 3-fold cross-validation.

    Parameters
    ----------
    targets : predictions of rows without a weight are 0 out of fold where a ridge speaks.
    seed : LightGBM's.
    shape : of the trees.
    trees : whether there are any.
    """
    n_targets = targets.value.shape[1]
    # Where no covariate tells rows apart each target is its mean.
    grown = trees and tells_apart(targets.x)
    rich = (targets.weight > 0).sum(axis=0) >= LEAST_ROWS if grown else np.zeros(n_targets, dtype=np.bool_)
    texts, crossed = [""] * n_targets, np.zeros(targets.value.shape)
    for_trees, for_lines = np.flatnonzero(rich), np.flatnonzero(~rich)
    if for_trees.size:
        forest, crossed[:, for_trees] = _trees(targets.take(for_trees), shape, seed)
        for place, text in zip(for_trees, forest.texts, strict=True):
            texts[place] = text
    centre, scale = _standards(targets.x)
    linear = np.zeros((targets.x.shape[1] + 1, n_targets))
    if for_lines.size:
        linear[:, for_lines], crossed[:, for_lines] = _lines(targets.take(for_lines), centre, scale)
    return Fitted(Forest(texts), linear, centre, scale, crossed)


def _trees(targets: Targets, shape: Shape, seed: int) -> tuple[Forest, Floats]:
    rows = [np.flatnonzero(weight > 0) for weight in targets.scaled.T]
    nursery = Nursery(Ground(targets.x), rows)
    folds = [_squares(targets, rows, targets.part == fold) for fold in range(FOLDS)]
    best = replace(shape, rounds=_rounds(nursery, folds, shape, seed))
    crossed = np.zeros(targets.value.shape)
    for fold, squares in enumerate(folds):
        scores = nursery.grow(squares, best, seed=seed)[1]
        for target, row in enumerate(rows):
            own = scores[nursery.bounds[target] : nursery.bounds[target + 1]]
            crossed[row, target] = np.where(targets.part[row] == fold, own, crossed[row, target])
    return nursery.grow(_squares(targets, rows, np.zeros(len(targets.x), dtype=np.bool_)), best, seed=seed)[0], crossed


def _squares(targets: Targets, rows: Sequence[Ints], held: Bools) -> Squares:
    scaled = targets.scaled
    value = np.concatenate([targets.value[row, target] for target, row in enumerate(rows)])
    weight = np.concatenate([scaled[row, target] for target, row in enumerate(rows)])
    out = np.concatenate([held[row] for row in rows])
    return Squares(value, weight * ~out, weight * out)


def _rounds(nursery: Nursery, folds: Sequence[Squares], shape: Shape, seed: int) -> int:
    def losses() -> Iterator[float]:
        growing = [nursery.held_losses(fold, shape, seed=seed) for fold in folds]
        yield from (sum(each) for each in zip(*growing, strict=True))

    return least(losses(), shape.patience)[0]


def _standards(x: Floats) -> tuple[Floats, Floats]:
    known = ~np.isnan(x)
    count = np.maximum(known.sum(axis=0), 1)
    centre = np.where(known, x, 0.0).sum(axis=0) / count
    spread = np.sqrt((np.where(known, x - centre, 0.0) ** 2).sum(axis=0) / count)
    return centre, np.where(spread > 0, spread, 1.0)


def design(x: Floats, centre: Floats, scale: Floats) -> Floats:
    """(n, d + 1) a column of ones, and standardised covariates, 0 where missing."""
    return np.hstack([np.ones((len(x), 1)), np.nan_to_num((x - centre) / scale)])


def _lines(targets: Targets, centre: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """Coefficients under the penalty of least out-of-fold loss over all targets, and out-of-fold predictions."""
    on, scaled = design(targets.x, centre, scale), targets.scaled
    lines = [
        _Line(on[rows], targets.value[rows, target], scaled[rows, target], targets.part[rows])
        for target, rows in enumerate(_weighted(scaled))
    ]
    crossed = [line.crossed for line in lines]
    losses = sum((line.losses(each) for line, each in zip(lines, crossed, strict=True)), np.zeros(len(PENALTIES)))
    best = int(np.argmin(losses))
    predicted = np.zeros(targets.value.shape)
    for target, rows in enumerate(_weighted(scaled)):
        predicted[rows, target] = crossed[target][best]
    return np.stack([line.coefficients(PENALTIES[best : best + 1])[0] for line in lines], axis=1), predicted


def _weighted(weight: Floats) -> Iterator[Ints]:
    """Rows with a weight, target by target."""
    return (np.flatnonzero(column > 0) for column in weight.T)


@dataclass(frozen=True)
class _Line:
    """One target on its r rows with a weight.

    Parameters
    ----------
    on : (r, d + 1).
    value, weight, part : (r,).
    """

    on: Floats
    value: Floats
    weight: Floats
    part: Ints

    @cached_property
    def crossed(self) -> Floats:
        """(penalties, r) out-of-fold predictions."""
        predicted = np.zeros((len(PENALTIES), self.value.size))
        for fold in range(FOLDS):
            held = self.part == fold
            kept = _Line(self.on[~held], self.value[~held], self.weight[~held], self.part[~held])
            predicted[:, held] = kept.coefficients(PENALTIES) @ self.on[held].T
        return predicted

    def losses(self, predicted: Floats) -> Floats:
        """(penalties,)."""
        losses: Floats = (predicted - self.value) ** 2 @ self.weight
        return losses

    def coefficients(self, penalties: Sequence[float]) -> Floats:
        """(penalties, d + 1); 0 under an infinite one."""
        weighted = self.on.T * self.weight
        finite = [penalty for penalty in penalties if np.isfinite(penalty)]
        found = np.zeros((len(penalties), self.on.shape[1]))
        normal = weighted @ self.on + np.array(finite)[:, None, None] * np.eye(self.on.shape[1])
        found[: len(finite)] = np.linalg.solve(
            normal, np.broadcast_to(weighted @ self.value, (len(finite), len(weighted)))[..., None]
        )[..., 0]
        return found
