"""The last resort: every pair has the board's rates, drawn a little to equal ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.learners.archive import pack
from app.stats.types import Covariates, Floats, Ints, Training

KIND = "constant"


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
        counts = np.bincount(training.outcome, training.weight, training.rule.n_categories) + 1
        return cls(counts / counts.sum(), training.n_items)

    def probabilities(self, x: Covariates) -> Floats:
        """(u, K, K, C), the same everywhere."""
        return np.tile(self.rates, (len(x), self.n_items, self.n_items, 1))

    def probabilities_at(self, x: Covariates, left: Ints, right: Ints) -> Floats:  # noqa: ARG002
        """(m, C), the same everywhere."""
        return np.tile(self.rates, (len(x), 1))

    def to_bytes(self) -> bytes:
        """The model as bytes that `app.learners.load_model` reads back."""
        return pack({"kind": KIND, "n_items": self.n_items}, {"rates": self.rates})


def read(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> ConstantRates:
    """The model that `ConstantRates.to_bytes` wrote."""
    return ConstantRates(arrays["rates"], header["n_items"])
