"""Scores as an operator might add them."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from app.stats.types import Floats

NOT_A_FUNCTION = 3


def mean_share(s: Floats) -> Floats:
    """Borda, for any number of matrices."""
    mean: Floats = (s.sum(axis=-1) - 0.5) / (s.shape[-1] - 1)
    return mean


def spread(s: Floats) -> Floats:
    """The geometric mean of an item's odds, one matrix at a time."""
    size = len(s)
    return np.array([np.exp(sum(np.log(s[j, k] / s[k, j]) for k in range(size)) / size) for j in range(size)])


def beaten(s: Floats) -> Floats:
    """A smooth count of rivals beaten; `expit` knows no complex numbers."""
    count: Floats = expit((s - 0.5) / 0.1).sum(axis=-1) - 0.5
    return count


def worst(s: Floats) -> Floats:
    """The least share, which has a kink."""
    least: Floats = np.abs(s + 1.0 * np.eye(s.shape[-1])).min(axis=-1)
    return least


def of_no_shape(s: Floats) -> Floats:
    """All shares."""
    return s


def not_finite(s: Floats) -> Floats:
    """The logarithm of what is 0 on the diagonal."""
    with np.errstate(divide="ignore"):
        logs: Floats = np.log(s - 0.5 * np.eye(s.shape[-1])).sum(axis=-1)
    return logs


def changing(s: Floats) -> Floats:
    """Changes what it is given."""
    s[0, 0] = 1.0
    return s.sum(axis=-1)


class Moody:
    """Gives other scores every time."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, s: Floats) -> Floats:
        self.calls += 1
        return s.sum(axis=-1) + self.calls


moody = Moody()


def median_share(s: Floats) -> Floats:
    """Finite on shares of up to four items only in name: it divides by what is 0 from five on."""
    return s.sum(axis=-1) / (5 - len(s))
