"""The featuriser and the fold models of a snapshot, asked about contexts that are sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.learners import Featuriser, Stack
from app.stats.types import Covariates, Floats, OutcomeModel

CELLS = 1_000_000
"""Contexts × models × K² that are looked at in one go.

What a request holds in memory is a few times this, whatever it asks for.
"""
FEW = 16
"""Contexts up to which the fold models are asked as one; where there are more, what they hold in the cache counts."""


@dataclass(frozen=True)
class Models:
    """What contexts are read by.

    Parameters
    ----------
    featuriser : None on boards without features.
    models : of the folds.
    stack : the same as one, where they are alike.
    n_items : K.
    judges : whose margins the models expect; of contexts that are sent all are silent.
    """

    featuriser: Featuriser | None
    models: Sequence[OutcomeModel]
    stack: Stack | None
    n_items: int
    judges: int

    def x(self, features: Sequence[Mapping[str, Any]]) -> Floats:
        """(u, d) covariates."""
        return np.zeros((len(features), 0)) if self.featuriser is None else self.featuriser.transform(features)

    def covariates(self, x: Floats, n_items: int) -> Covariates:
        """The covariates, with silent judges of so many items."""
        if not self.judges:
            return Covariates(x)
        return Covariates(x, np.full((len(x), n_items, n_items, self.judges), np.nan))

    def predicted(self, x: Floats) -> Floats:
        """(models u, K, K, C) probabilities: numpy's price of a call is paid once for all models."""
        part = self.covariates(x, self.n_items)
        if self.stack is not None and len(x) <= FEW:
            return self.stack.probabilities(part)
        return np.concatenate([model.probabilities(part) for model in self.models])

    def averaged(self, each: Floats) -> Floats:
        """(u, K, K) means over the models of values (models u, K, K)."""
        mean: Floats = each.reshape(len(self.models), -1, self.n_items, self.n_items).mean(axis=0)
        return mean

    def portions(self, contexts: int) -> Iterator[slice]:
        """Contexts that are looked at in one go."""
        step = max(1, CELLS // (max(len(self.models), 1) * self.n_items**2))
        return (slice(start, start + step) for start in range(0, contexts, step))
