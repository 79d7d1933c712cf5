"""Threshold and worst-rival scores: nonlinear means over an item's rivals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from app.stats.errors import InvalidInput
from app.stats.gars.estimand import RivalMean
from app.stats.gars.graph import Graph
from app.stats.types import Floats


@dataclass(frozen=True)
class Threshold(RivalMean):
    """Smoothed share of rivals beaten: mean over k of σ((s_jk - ½) / τ) (DMLRank, Appendix C.2).

    Parameters
    ----------
    temperature : τ > 0; towards 0 the score counts rivals against which s_jk > ½.
    """

    temperature: float = 0.05
    name: str = "threshold"

    def __post_init__(self) -> None:
        _check(self.temperature)

    def of_shares(self, s: Floats, graph: Graph) -> Floats:
        """(u, K) in [0, 1]."""
        beaten: Floats = np.where(graph.edges, expit((s - 0.5) / self.temperature), 0.0).sum(axis=-1)
        value: Floats = beaten / np.maximum(graph.degree, 1.0)
        return value

    def own_slopes(self, s: Floats, graph: Graph) -> Floats:
        """σ (1 - σ) / (τ degree_j) on edges."""
        beaten = expit((s - 0.5) / self.temperature)
        slopes = beaten * (1.0 - beaten) / (self.temperature * np.maximum(graph.degree, 1.0)[:, None])
        return np.where(graph.edges, slopes, 0.0)


@dataclass(frozen=True)
class Robust(RivalMean):
    """Smoothed share against the worst rival: Σ_k s_jk e^{-s_jk/τ} / Σ_k e^{-s_jk/τ} (DMLRank, Appendix C.2).

    Parameters
    ----------
    temperature : τ > 0; towards 0 the score is min over k of s_jk.
    """

    temperature: float = 0.02
    name: str = "robust"

    def __post_init__(self) -> None:
        _check(self.temperature)

    def of_shares(self, s: Floats, graph: Graph) -> Floats:
        """(u, K) in [0, 1]."""
        value: Floats = (self._weights(s, graph) * s).sum(axis=-1)
        return value

    def own_slopes(self, s: Floats, graph: Graph) -> Floats:
        """w_jk (1 - (s_jk - F_j) / τ), w the softmin weights."""
        weights = self._weights(s, graph)
        mean = (weights * s).sum(axis=-1, keepdims=True)
        slopes: Floats = weights * (1.0 - (s - mean) / self.temperature)
        return slopes

    def _weights(self, s: Floats, graph: Graph) -> Floats:
        """(u, K, K) softmin weights over the edges of each row."""
        worst = np.where(graph.edges, s, 1.0).min(axis=-1, keepdims=True)
        raised = np.where(graph.edges, np.exp(-np.maximum(s - worst, 0.0) / self.temperature), 0.0)
        total = raised.sum(axis=-1, keepdims=True)
        weights: Floats = np.divide(raised, total, out=np.zeros(raised.shape), where=total > 0)
        return weights


def _check(temperature: float) -> None:
    if not temperature > 0.0:
        raise InvalidInput(f"temperature {temperature} is not positive")
