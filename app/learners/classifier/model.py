"""The fitted classifier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from app.learners.archive import pack
from app.stats.types import Covariates, Floats, Ints

KIND = "lightgbm"
_CHUNK = 1 << 22
"""Numbers in the table of one prediction."""


class Classifier:
    """P(c | x, j, k) ∝ rate_c exp(trees_c(x, j, k, margins)).

    Parameters
    ----------
    text : LightGBM's text of the trees, C a round.
    rates : (C,) what the trees start from.
    n_items : K.
    """

    def __init__(self, text: str, rates: Floats, n_items: int) -> None:
        self.rates = rates
        self.n_items = n_items
        self._text = text
        self._booster = lightgbm.Booster(model_str=text)

    def probabilities(self, x: Covariates) -> Floats:
        """(u, K, K, C) category probabilities of every ordered pair; the diagonal carries no meaning."""
        left, right = np.nonzero(~np.eye(self.n_items, dtype=np.bool_))
        mu = np.full((len(x), self.n_items, self.n_items, self.rates.size), 1 / self.rates.size)
        for start, stop in self._chunks(x, len(x), left.size):
            n = stop - start
            pattern = np.repeat(np.arange(start, stop), left.size)
            chances = self._predicted(x, pattern, np.tile(left, n), np.tile(right, n))
            mu[start:stop, left, right] = chances.reshape(n, left.size, -1)
        return mu

    def probabilities_at(self, x: Covariates, left: Ints, right: Ints) -> Floats:
        """(m, C) for one ordered pair per covariate row."""
        mu = np.empty((left.size, self.rates.size))
        for start, stop in self._chunks(x, left.size, 1):
            mu[start:stop] = self._predicted(x, np.arange(start, stop), left[start:stop], right[start:stop])
        return mu

    def to_bytes(self) -> bytes:
        """The model as bytes that `app.learners.load_model` reads back."""
        return pack({"kind": KIND, "n_items": self.n_items, "trees": self._text}, {"rates": self.rates})

    def _predicted(self, x: Covariates, pattern: Ints, left: Ints, right: Ints) -> Floats:
        table = columns(x, pattern, (left, right), n_items=self.n_items)
        raw = self._booster.predict(table, raw_score=True, num_threads=1, validate_features=False)
        chances: Floats = softmax(np.log(self.rates) + np.asarray(raw), axis=1)
        return chances

    def _chunks(self, x: Covariates, length: int, pairs: int) -> Iterator[tuple[int, int]]:
        """Bounds of parts that take about `_CHUNK` numbers, with `pairs` table rows to each of the `length`."""
        judges = 0 if x.margins is None else x.margins.shape[3]
        width = x.x.shape[1] + 2 * self.n_items + judges
        step = max(_CHUNK // (width * max(pairs, 1)), 1)
        yield from ((start, min(start + step, length)) for start in range(0, length, step))


def columns(x: Covariates, pattern: Ints, pair: tuple[Ints, Ints], *, n_items: int) -> NDArray[np.float32]:
    """(m, d + 2 K + q) covariates, left item, right item, judges' margins; NaN where one is missing or silent.

    Parameters
    ----------
    x : distinct covariates.
    pattern : (m,) which of them.
    pair : (m,) left and (m,) right items.
    n_items : K.
    """
    item = np.eye(n_items, dtype=np.float32)
    judged = x.judged(pattern, *pair).astype(np.float32)
    return np.concatenate([x.x[pattern].astype(np.float32), item[pair[0]], item[pair[1]], judged], axis=1)


def read(header: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Classifier:
    """The model that `Classifier.to_bytes` wrote."""
    return Classifier(header["trees"], arrays["rates"], header["n_items"])
