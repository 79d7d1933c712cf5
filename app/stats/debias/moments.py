"""Sums of influence rows that shards, workers and increments merge."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.errors import NotIdentified
from app.stats.types import Estimate, Floats


@dataclass(frozen=True, slots=True)
class Moments:
    """n, Σ psi and Σ psi psiᵀ of a set of rows; sets add, and a row can be taken out again.

    Parameters
    ----------
    n : number of rows.
    total : (d,) Σ psi.
    square : (d, d) Σ psi psiᵀ.
    """

    n: int
    total: Floats
    square: Floats

    @classmethod
    def of(cls, psi: Floats) -> Moments:
        """The moments of rows psi (n, d)."""
        return cls(psi.shape[0], psi.sum(axis=0), psi.T @ psi)

    @classmethod
    def behind(cls, estimate: Estimate) -> Moments:
        """The moments whose estimate this is: rows that it was made of need not be seen again.

        Of a clustered covariance they are those of rows, each on its own, that scatter as the clusters do.
        """
        n, mean = estimate.n_rows, estimate.value
        return cls(n, n * mean, n**2 * estimate.covariance + n * np.outer(mean, mean))

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.n + other.n, self.total + other.total, self.square + other.square)

    def __sub__(self, other: Moments) -> Moments:
        return Moments(self.n - other.n, self.total - other.total, self.square - other.square)

    def replaced(self, old: Floats, new: Floats) -> Moments:
        """The moments once rows `old` (m, d) have become `new` (m, d): a late vote replaces its row."""
        return self - Moments.of(old) + Moments.of(new)

    def estimate(self) -> Estimate:
        """Mean and its covariance Σ^ / n with every row its own cluster.

        Raises
        ------
        NotIdentified
            Without a row.
        """
        if self.n < 1:
            raise NotIdentified("no rows to average")
        mean = self.total / self.n
        return Estimate(mean, (self.square / self.n - np.outer(mean, mean)) / self.n, self.n)
