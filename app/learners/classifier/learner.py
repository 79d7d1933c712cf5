"""LightGBM's multiclass classifier, tuned by cross-validation inside the training votes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import lightgbm
import numpy as np

from app.learners.classifier.model import Classifier, columns
from app.learners.constant import ConstantRates, laplace, or_constant
from app.learners.davidson.cells import Cells, collapse, dealt
from app.learners.trees import Ground, Shape, least
from app.stats.types import Floats, OutcomeModel, Training

GRID = tuple(Shape(leaves=leaves, rounds=300, patience=8) for leaves in (7, 15, 31))
FOLDS = 3


@dataclass(frozen=True, slots=True)
class LightGBMLearner:
    """Trees on (x, one-hot j, one-hot k, judges' margins): DMLRank's learner (arXiv 2601.21816, experiments).

    Tuned are the leaves of a tree, 7, 15 or 31, and the number of rounds, up to 300, both by the log loss of a 3-fold
    cross-validation inside the training votes. The learning rate is .1: half and double of it choose other rounds and
    reach the same loss. Trees start from the categories' shares, so votes that no tree can learn from leave those.

    Parameters
    ----------
    grid : shapes of trees to choose from.
    """

    grid: tuple[Shape, ...] = GRID

    def fit(self, training: Training, *, seed: int) -> Classifier | ConstantRates:
        """Fit with the best shape; the constant rates where votes are too few to hold out, or fitting fails.

        Parameters
        ----------
        training : the votes of the other folds; groups stay together in the inner folds.
        seed : of the inner folds.
        """
        return or_constant(lambda: self._fit(training, seed), training, name="lightgbm")

    def begin(self, training: Training, *, seed: int) -> Classifier | ConstantRates:
        """The whole of it: trees grow one after the other."""
        return self.fit(training, seed=seed)

    def finish(self, training: Training, begun: OutcomeModel, *, seed: int) -> OutcomeModel:  # noqa: ARG002
        """Nothing is left to do."""
        return begun

    def _fit(self, training: Training, seed: int) -> Classifier | ConstantRates:
        part = dealt(training.group, FOLDS, seed=seed)
        folds = [collapse(training, part == fold) for fold in range(FOLDS)]
        if any(not weight.any() for fold in folds for weight in (fold.kept, fold.held)):
            return ConstantRates.of(training)
        field = _Field(training, folds[0], seed)
        return field.grown(field.best(self.grid, folds))


class _Field:
    """What all fits on one set of cells share.

    Parameters
    ----------
    training : the votes.
    cells : of all votes.
    seed : LightGBM's.
    """

    def __init__(self, training: Training, cells: Cells, seed: int) -> None:
        self.cells = cells
        self.n_items = training.n_items
        self.n_categories = training.rule.n_categories
        self.seed = seed
        table = columns(training.x, cells.pattern, (cells.left, cells.right), n_items=training.n_items)
        self.ground = Ground(table)

    def best(self, grid: Sequence[Shape], folds: Sequence[Cells]) -> Shape:
        """The shape, and its number of rounds, of least held-out loss; the first of equals."""
        found = [least(self._losses(shape, folds), shape.patience) for shape in grid]
        at = int(np.argmin([loss for _, loss in found]))
        return replace(grid[at], rounds=found[at][0])

    def grown(self, shape: Shape) -> Classifier:
        """The classifier on all votes."""
        rates = self._rates(self.cells.weight)
        booster = lightgbm.Booster(self._parameters(shape), self._plot(self.cells.weight, rates))
        for _ in range(shape.rounds):
            booster.update()
        return Classifier(booster.model_to_string(), rates, self.n_items)

    def _losses(self, shape: Shape, folds: Sequence[Cells]) -> Iterator[float]:
        """Mean held-out log loss after 0, 1, 2 … rounds."""
        boosters = [self._seedling(shape, fold) for fold in folds]
        share = np.array([fold.held.sum() for fold in folds]) / self.cells.weight.sum()
        yield float(share @ [_held_loss(booster) for booster in boosters])
        for _ in range(shape.rounds):
            for booster in boosters:
                booster.update()
            yield float(share @ [_held_loss(booster) for booster in boosters])

    def _seedling(self, shape: Shape, fold: Cells) -> lightgbm.Booster:
        rates = self._rates(fold.kept)
        booster = lightgbm.Booster(self._parameters(shape), self._plot(fold.kept, rates))
        return booster.add_valid(self._plot(fold.held, rates), "held")

    def _plot(self, weight: Floats, rates: Floats) -> lightgbm.Dataset:
        """The cells with a weight, starting from the rates."""
        rows = np.flatnonzero(weight > 0)
        plot = self.ground.plot(rows)
        plot.set_label(self.cells.outcome[rows]).set_weight(weight[rows])
        return plot.set_init_score(np.tile(np.log(rates), (rows.size, 1)))

    def _rates(self, weight: Floats) -> Floats:
        return laplace(self.cells.outcome, weight, self.n_categories)

    def _parameters(self, shape: Shape) -> dict[str, Any]:
        own = {"objective": "multiclass", "metric": "multi_logloss", "num_class": self.n_categories}
        return {**shape.parameters(self.seed), **own}


def _held_loss(booster: lightgbm.Booster) -> float:
    return float(booster.eval_valid()[0][2])
