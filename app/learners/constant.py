"""The last resort: every pair has the board's rates, drawn a little to equal ones."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from lightgbm.basic import LightGBMError
from numpy.typing import NDArray

from app.learners.archive import pack
from app.stats.types import Covariates, Floats, Ints, Training

KIND = "constant"
Model = TypeVar("Model")
logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConstantRates:
    """mu is the same for every context and ordered pair.

    Parameters
    ----------
    rates : (C,) category probabilities.
    n_items : K.
    """

    rates: Floats
    n_items: int

    @classmethod
    def of(cls, training: Training) -> ConstantRates:
        """(votes of c + 1) / (votes + C), Laplace's rule of succession."""
        return cls(laplace(training.outcome, training.weight, training.rule.n_categories), training.n_items)

    def probabilities(self, x: Covariates) -> Floats:
        """(u, K, K, C), the same everywhere."""
        return np.tile(self.rates, (len(x), self.n_items, self.n_items, 1))

    def probabilities_at(self, x: Covariates, left: Ints, right: Ints) -> Floats:  # noqa: ARG002
        """(m, C), the same everywhere."""
        return np.tile(self.rates, (len(x), 1))

    def to_bytes(self) -> bytes:
        """The model as bytes that `app.learners.load_model` reads back."""
        return pack({"kind": KIND, "n_items": self.n_items}, {"rates": self.rates})


def laplace(outcome: Ints, weight: Floats, categories: int) -> Floats:
    """(C,) shares of the categories, each counted once more than seen."""
    counts = np.bincount(outcome, weight, categories) + 1
    shares: Floats = counts / counts.sum()
    return shares


def or_constant(fit: Callable[[], Model], training: Training, *, name: str) -> Model | ConstantRates:
    """What `fit` returns; the constant rates, with a line in the log, where LightGBM or the arithmetic gives up."""
    try:
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            return fit()
    except (LightGBMError, FloatingPointError) as error:
        votes = len(training.left)
        logger.warning("%s could not be fitted to %d votes, constant rates stand in: %s", name, votes, error)
        return ConstantRates.of(training)


def read(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ConstantRates:
    """The model that `ConstantRates.to_bytes` wrote."""
    return ConstantRates(arrays["rates"], header["n_items"])
