"""The outcome model behind the synthetic boards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.types import Floats, Ints

QUADRATURE_NODES = 15


@dataclass(frozen=True, slots=True)
class Preferences:
    """A Davidson model in x with nonlinear utilities, cyclic pair terms and, where wanted, voters' tastes.

    u_j(x) = a_j + θ_j·x + ω_j sin(2 x_m(j)) + ζ_j x_1 x_2 and D_jk = u_j - u_k + b + κ sin(2π (k - j) / K); the logits
    are D/2 for left, -D/2 for right and t_c + τ_c·x for every other category. Voters' tastes add N(0, shift²) to D.

    Parameters
    ----------
    level, wave, product : (K,) a, ω, ζ.
    slope : (K, d) θ.
    axis : (K,) m(j), the covariate in the sine.
    other_level, other_slope : (C - 2,) t and (C - 2, d) τ.
    cycle : κ, in log-odds.
    position : b, in log-odds.
    """

    level: Floats
    wave: Floats
    product: Floats
    slope: Floats
    axis: Ints
    other_level: Floats
    other_slope: Floats
    cycle: float
    position: float = 0.25

    @classmethod
    def drawn(cls, shape: tuple[int, int], others: tuple[float, ...], *, cycle: float, world: int) -> Preferences:
        """Coefficients for (K, d) = shape from the seed `world`; `others` holds t."""
        generator = np.random.default_rng([world, 0])
        n_items, width = shape
        return cls(
            level=generator.permutation(np.linspace(-0.6, 0.6, n_items)),
            wave=generator.normal(0.0, 0.4, n_items),
            product=generator.normal(0.0, 0.4, n_items),
            slope=generator.normal(0.0, 1.0 / np.sqrt(width), shape),
            axis=generator.integers(0, width, n_items),
            other_level=np.array(others),
            other_slope=generator.normal(0.0, 0.6 / np.sqrt(width), (len(others), width)),
            cycle=cycle,
        )

    def utilities(self, x: Floats) -> Floats:
        """u (n, K)."""
        curved = self.wave * np.sin(2.0 * x[:, self.axis]) + self.product * x[:, :1] * x[:, 1:2]
        utilities: Floats = self.level + x @ self.slope.T + curved
        return utilities

    def margins(self, x: Floats) -> Floats:
        """D (n, K, K) of every ordered pair."""
        utilities, items = self.utilities(x), np.arange(self.level.size)
        margins: Floats = utilities[:, :, None] - utilities[:, None, :] + self._constant(items[:, None], items)
        return margins

    def margins_at(self, x: Floats, left: Ints, right: Ints) -> Floats:
        """D (m,) of one ordered pair a row."""
        utilities, each = self.utilities(x), np.arange(left.size)
        margins: Floats = utilities[each, left] - utilities[each, right] + self._constant(left, right)
        return margins

    def outcomes(self, x: Floats, margins: Floats, *, shift: float = 0.0) -> Floats:
        """Category probabilities, the mean over N(0, shift²) added to D (Gauss-Hermite quadrature).

        Parameters
        ----------
        x : (n, d).
        margins : (n, ...) D of each row.
        shift : standard deviation of what voters' tastes add to D.

        Returns
        -------
        (n, ..., C).
        """
        others = np.exp(self.other_level + x @ self.other_slope.T)
        others = others.reshape(len(x), *(1,) * (margins.ndim - 1), -1)
        nodes, weights = np.polynomial.hermite_e.hermegauss(QUADRATURE_NODES if shift else 1)
        first, decided = np.exp(margins / 2.0), np.zeros((*margins.shape, 2))
        rest = np.zeros(margins.shape)
        for factor, weight in zip(np.exp(shift * nodes / 2.0), weights / weights.sum(), strict=True):
            left = first * factor
            right = 1.0 / left
            share = weight / (left + right + others.sum(axis=-1))
            decided[..., 0] += left * share
            decided[..., 1] += right * share
            rest += share
        return np.concatenate([decided, rest[..., None] * others], axis=-1)

    def _constant(self, left: Ints, right: Ints) -> Floats:
        """The part of D that no covariate moves."""
        constant: Floats = self.position + self.cycle * np.sin(2.0 * np.pi * (right - left) / self.level.size)
        return constant
