"""LightGBM boosters grown by hand: own gradients, many boosters in step, rows held out by a weight of zero."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import lightgbm
import numpy as np
from numpy.typing import NDArray

from app.learners.walks import Walks
from app.stats.types import Floats, Ints

TINY = 1e-35
"""Values below it are 0 to LightGBM."""
FEW = 16
"""Rows up to which trees in arrays are quicker than LightGBM, whose every call costs as much as hundreds of rows."""


class Objective(Protocol):
    """A loss of all boosters' scores, laid end to end in the boosters' order."""

    def newton(self, scores: Floats) -> tuple[Floats, Floats]:
        """The training part's gradient and Hessian in each score; 0 for rows held out."""

    def held_loss(self, scores: Floats) -> float:
        """The loss on the rows held out."""


@dataclass(frozen=True, slots=True)
class Shape:
    """How trees grow.

    Parameters
    ----------
    leaves : most leaves of a tree.
    hessian : least sum of Hessians in a leaf; the number of rows says nothing, as many weigh 0.
    ridge : added to a leaf's Hessian.
    rate : share of each tree that is taken.
    rounds : most rounds.
    patience : rounds without a better held-out loss before growth stops.
    """

    leaves: int = 6
    hessian: float = 3.0
    ridge: float = 10.0
    rate: float = 0.1
    rounds: int = 150
    patience: int = 12

    def parameters(self, seed: int) -> dict[str, Any]:
        """LightGBM's names for it."""
        return {
            "objective": "none",
            "metric": "none",
            "num_leaves": self.leaves,
            "min_sum_hessian_in_leaf": self.hessian,
            "min_data_in_leaf": 1,
            "lambda_l2": self.ridge,
            "learning_rate": self.rate,
            "boost_from_average": False,
            "seed": seed,
            **_DATA,
        }


_DATA: dict[str, Any] = {
    "max_bin": 63,
    "min_data_in_bin": 1,
    "feature_pre_filter": False,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbosity": -1,
}


class Forest:
    """Grown boosters, one score each; a booster may be missing, its score is 0."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        self._boosters = [lightgbm.Booster(model_str=text) if text else None for text in self.texts]

    def scores(self, index: int, x: Floats) -> Floats:
        """(u,) score of booster `index` at the covariates x (u, d)."""
        booster = self._boosters[index]
        if booster is None or not len(x):
            return np.zeros(len(x))
        return np.asarray(booster.predict(x, raw_score=True, num_threads=1, validate_features=False))

    def all_scores(self, x: Floats) -> Floats:
        """(u, number of boosters)."""
        if len(x) <= FEW:
            return self._walks.scores(x)
        columns = [self.scores(index, x) for index in range(len(self.texts))]
        return np.stack(columns, axis=1) if columns else np.zeros((len(x), 0))

    @cached_property
    def _walks(self) -> Walks:
        return Walks.of(self.texts)


class Ground:
    """Covariates x (u, d), NaN where missing, binned once for all boosters.

    `splits`: whether any of them tells rows apart; where none does LightGBM grows nothing, and fails.
    """

    def __init__(self, x: Floats | NDArray[np.float32]) -> None:
        self._whole = lightgbm.Dataset(x, params=_DATA, free_raw_data=False).construct()
        self.splits = tells_apart(x)

    def plot(self, rows: Ints) -> lightgbm.Dataset:
        """The named rows, ascending."""
        return self._whole.subset(rows.tolist()).construct()


def tells_apart(x: Floats | NDArray[np.float32]) -> bool:
    """Whether any covariate (u, d) differs between rows."""
    seen = np.where(np.abs(x) < TINY, 0.0, x)
    first = seen[:1]
    return bool(((seen != first) & ~(np.isnan(seen) & np.isnan(first))).any())


class Nursery:
    """Boosters that grow in step.

    Parameters
    ----------
    ground : the binned covariates.
    rows : per booster the rows it is grown on, ascending.
    """

    def __init__(self, ground: Ground, rows: Sequence[Ints]) -> None:
        self._plots = [ground.plot(row) if ground.splits and row.size else None for row in rows]
        self.bounds = np.concatenate([[0], np.cumsum([row.size for row in rows])])

    def grow(self, objective: Objective, shape: Shape, *, seed: int) -> tuple[Forest, Floats]:
        """Grow `shape.rounds` rounds, every booster once a round.

        Returns
        -------
        the forest and its scores on the rows, end to end.
        """
        boosters = self._seedlings(shape, seed)
        scores = np.zeros(self.bounds[-1])
        for _ in range(shape.rounds):
            scores = self._round(boosters, objective, scores)
        texts = [booster.model_to_string() if booster and booster.num_trees() else "" for booster in boosters]
        return Forest(texts), scores

    def best_rounds(self, objective: Objective, shape: Shape, *, seed: int) -> int:
        """The number of rounds with the least held-out loss; 0 when trees do not help."""
        return least(self.held_losses(objective, shape, seed=seed), shape.patience)[0]

    def held_losses(self, objective: Objective, shape: Shape, *, seed: int) -> Iterator[float]:
        """The held-out loss after 0, 1, 2 … rounds."""
        boosters = self._seedlings(shape, seed)
        scores = np.zeros(self.bounds[-1])
        yield objective.held_loss(scores)
        for _ in range(shape.rounds):
            scores = self._round(boosters, objective, scores)
            yield objective.held_loss(scores)

    def _seedlings(self, shape: Shape, seed: int) -> list[lightgbm.Booster | None]:
        parameters = shape.parameters(seed)
        return [lightgbm.Booster(parameters, plot) if plot else None for plot in self._plots]

    def _round(self, boosters: Sequence[lightgbm.Booster | None], objective: Objective, scores: Floats) -> Floats:
        gradient, hessian = objective.newton(scores)
        grown = scores.copy()
        for booster, start, stop in zip(boosters, self.bounds, self.bounds[1:], strict=False):
            if booster is not None:
                booster.update(fobj=_constant(gradient[start:stop], hessian[start:stop]))
                grown[start:stop] = _training_scores(booster)
        return grown


def least(losses: Iterable[float], patience: int) -> tuple[int, float]:
    """The place and size of the least loss seen before `patience` others in a row were no better."""
    place, size = 0, np.inf
    for round_, loss in enumerate(losses):
        if loss < size:
            place, size = round_, loss
        elif round_ - place >= patience:
            break
    return place, size


def _constant(gradient: Floats, hessian: Floats) -> Callable[[Floats, lightgbm.Dataset], tuple[Floats, Floats]]:
    return lambda _scores, _data: (gradient, hessian)


def _training_scores(booster: lightgbm.Booster) -> Floats:
    """The booster's scores on its own rows, through the one public door: a metric that keeps what it is shown."""
    seen: list[Floats] = []

    def metric(scores: Floats, _data: lightgbm.Dataset) -> tuple[str, float, bool]:
        seen.append(scores)
        return "seen", 0.0, False

    booster.eval_train(metric)
    return seen[0]
