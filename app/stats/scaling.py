"""Covariates made fit for linear predictors: centred, scaled, drawn in, gaps filled with the mean."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from app.stats.types import Floats

_REACH = 5.0


@dataclass(frozen=True, slots=True)
class Scaling:
    """Mean and standard deviation of each covariate.

    Parameters
    ----------
    mean, scale : (d,), or (V, 1, d) of V samples at once.
    """

    mean: Floats
    scale: Floats

    @classmethod
    def of(cls, x: Floats) -> Scaling:
        """Of covariates x (u, d), gaps aside; a constant or empty column scales to 0."""
        if not len(x):
            return cls(np.zeros(x.shape[1]), np.ones(x.shape[1]))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # an all-missing column has no mean: set below
            mean, scale = np.nanmean(x, axis=0), np.nanstd(x, axis=0)
        steady = ~(scale > 1e-12 * (1 + np.abs(mean)))
        return cls(np.nan_to_num(mean), np.where(steady, np.inf, scale))

    def design(self, x: Floats) -> Floats:
        """(u, 1 + d), or (V, u, 1 + d): a leading 1, then the scaled covariates within ±5, 0 where missing."""
        scaled = np.minimum(np.maximum((x - self.mean) / self.scale, -_REACH), _REACH)
        design = np.ones((*scaled.shape[:-1], 1 + x.shape[1]))
        design[..., 1:] = np.where(np.isnan(scaled), 0.0, scaled)
        return design
