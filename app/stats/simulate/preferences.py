"""The outcome model behind the synthetic boards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.types import Floats, Ints

QUADRATURE_NODES = 15


@dataclass(frozen=True, slots=True)
class Strength:
    """How far preferences are from equal chances, in log-odds.

    Parameters
    ----------
    slope : standard deviation of an item's linear utility θ·x where each covariate has variance 1.
    curve : that of its coefficients of sin(2 x) and x_1 x_2.
    cycle : κ, amplitude of the cyclic pair terms.
    pairs : standard deviation of further pair terms, drawn one by one.
    """

    slope: float = 1.0
    curve: float = 0.4
    cycle: float = 0.5
    pairs: float = 0.0


@dataclass(frozen=True, slots=True)
class Preferences:
    """A Davidson model in x with nonlinear utilities, cyclic pair terms and, where wanted, voters' tastes.

    u_j(x) = a_j + θ_j·x + ω_j sin(2 x_m(j)) + ζ_j x_1 x_2 and D_jk = u_j - u_k + b + g_jk; the logits are D/2 for left,
    -D/2 for right and t_c + τ_c·x for every other category. Voters' tastes add N(0, shift²) to D.

    Parameters
    ----------
    level, wave, product : (K,) a, ω, ζ.
    slope : (K, d) θ.
    axis : (K,) m(j), the covariate in the sine.
    other_level, other_slope : (C - 2,) t and (C - 2, d) τ.
    pair : (K, K) g, with g_jk = -g_kj: κ sin(2π (k - j) / K) and terms drawn pair by pair.
    position : b, in log-odds.
    """

    level: Floats
    wave: Floats
    product: Floats
    slope: Floats
    axis: Ints
    other_level: Floats
    other_slope: Floats
    pair: Floats
    position: float = 0.25

    @classmethod
    def drawn(cls, shape: tuple[int, int], others: tuple[float, ...], *, strength: Strength, world: int) -> Preferences:
        """Coefficients for (K, d) = shape from the seed `world`; `others` holds t."""
        generator = np.random.default_rng([world, 0])
        n_items, width = shape
        return cls(
            level=generator.permutation(np.linspace(-0.6, 0.6, n_items)),
            wave=generator.normal(0.0, strength.curve, n_items),
            product=generator.normal(0.0, strength.curve, n_items),
            slope=generator.normal(0.0, strength.slope / np.sqrt(width), shape),
            axis=generator.integers(0, width, n_items),
            other_level=np.array(others),
            other_slope=generator.normal(0.0, 0.6 / np.sqrt(width), (len(others), width)),
            pair=_pair_terms(n_items, strength, np.random.default_rng([world, 2])),
        )

    def utilities(self, x: Floats) -> Floats:
        """u (n, K)."""
        curved = self.wave * np.sin(2.0 * x[:, self.axis]) + self.product * x[:, :1] * x[:, 1:2]
        utilities: Floats = self.level + x @ self.slope.T + curved
        return utilities

    def margins(self, x: Floats) -> Floats:
        """D (n, K, K) of every ordered pair."""
        utilities = self.utilities(x)
        margins: Floats = utilities[:, :, None] - utilities[:, None, :] + self.position + self.pair
        return margins

    def margins_at(self, x: Floats, left: Ints, right: Ints) -> Floats:
        """D (m,) of one ordered pair a row."""
        utilities, each = self.utilities(x), np.arange(left.size)
        margins: Floats = utilities[each, left] - utilities[each, right] + self.position + self.pair[left, right]
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


def _pair_terms(n_items: int, strength: Strength, generator: np.random.Generator) -> Floats:
    items = np.arange(n_items)
    cyclic = strength.cycle * np.sin(2.0 * np.pi * (items - items[:, None]) / n_items)
    upper = np.triu(generator.normal(0.0, strength.pairs, (n_items, n_items)), 1)
    terms: Floats = cyclic + upper - upper.T
    return terms
