"""Scores that an operator defines: any pure function of the shares, with a Jacobian made for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from app.stats.errors import InvalidInput
from app.stats.gars.estimand import Estimand, ShareEstimand
from app.stats.gars.graph import Graph
from app.stats.types import Bools, Floats, Ints

ScoreFunction = Callable[[NDArray[Any]], NDArray[Any]]
Derivative = Literal["complex", "central"]

COMPLEX_STEP, CENTRAL_STEP = 1e-20, 1e-6
CLOSE = 1e-5
"""Largest difference of both derivatives, relative to 1 + the largest slope, at which the complex one is taken."""
PROBED_ITEMS, PROBES = (2, 3, 5), 4
SEED = 20260121
HELD = 4_000_000
"""Shares (moves × m²) held at a time."""


@dataclass(frozen=True)
class CustomEstimand(ShareEstimand):
    """F = f(s), f a function of the shares among the m ranked items; make one with `custom`.

    Every pair of them needs a share, so that f must not be asked for observed pairs alone.

    Parameters
    ----------
    name : how it is called.
    function : f, from shares (m, m) to scores (m,); s_jk + s_kj = 1, ½ on the diagonal. Where `vectorised`, from
        (u, m, m) to (u, m).
    vectorised : whether f takes many matrices at once.
    derivative : how the Jacobian is made: by a complex step (exact to rounding) or by central differences.
    """

    name: str
    function: ScoreFunction
    vectorised: bool
    derivative: Derivative

    def of_shares(self, s: Floats, graph: Graph) -> Floats:
        """F (u, K), 0 outside the component; see `ShareEstimand`.

        Raises
        ------
        InvalidInput
            Where f returns numbers that are not finite.
        """
        scores = np.zeros(s.shape[:-1])
        scores[..., graph.ranked] = _checked(self.name, self._scores(self._ranked(s, graph)))
        return scores

    def slope_at(self, s: Floats, index: Ints, left: Ints, right: Ints, graph: Graph) -> Floats:
        """Derivative as s_jk rises and s_kj falls; see `ShareEstimand`. Pairs stay within the component."""
        slopes = np.zeros((index.size, graph.n_items))
        place = np.cumsum(graph.component) - 1
        ranked, step = self._ranked(s, graph), max(HELD // max(graph.ranked.size**2, 1), 1)
        for start in range(0, index.size, step):
            at = slice(start, start + step)
            moved = self._moved(ranked[index[at]], place[left[at]], place[right[at]])
            slopes[at, graph.ranked] = _checked(self.name, moved)
        return slopes

    def _moved(self, shares: Floats, left: Ints, right: Ints) -> Floats:
        """(r, m) derivative of each matrix (r, m, m) along its pair."""
        if self.derivative == "complex":
            ahead = self._scores(_along(shares, left, right, 1j * COMPLEX_STEP))
            return np.imag(ahead) / COMPLEX_STEP
        ahead = self._scores(_along(shares, left, right, CENTRAL_STEP))
        behind = self._scores(_along(shares, left, right, -CENTRAL_STEP))
        slopes: Floats = (ahead - behind) / (2.0 * CENTRAL_STEP)
        return slopes

    def _scores(self, shares: NDArray[Any]) -> NDArray[Any]:
        if self.vectorised:
            return np.asarray(self.function(shares))
        return np.array([self.function(each) for each in shares]).reshape(shares.shape[:-1])

    def _ranked(self, s: Floats, graph: Graph) -> Floats:
        """(u, m, m) shares of the component, far enough within [0, 1] for a step either way, ½ on the diagonal."""
        shares = np.clip(s[..., graph.ranked[:, None], graph.ranked], CENTRAL_STEP, 1.0 - CENTRAL_STEP)
        shares[..., np.eye(graph.ranked.size, dtype=np.bool_)] = 0.5
        return shares


def custom(name: str, function: ScoreFunction) -> CustomEstimand:
    """Register a function of the shares as an estimand.

    The function is tried on random shares of 2, 3 and 5 items: it must give one finite score an item, the same each
    time, and leave its argument alone. Its Jacobian is made by a complex step (Squire and Trapp, 1998) where that
    agrees with central differences, and by these elsewhere: `abs`, `expit`, comparisons and whatever else does not
    continue to complex numbers.

    Parameters
    ----------
    name : how the estimand will be called.
    function : from shares (m, m), with s_jk + s_kj = 1 and ½ on the diagonal, to scores (m,). Tried as well on a stack
        (u, m, m): where that gives the same scores (u, m), it is called so, which is faster.

    Raises
    ------
    InvalidInput
        Where it fails, or does not give such scores.
    """
    generator = np.random.default_rng(SEED)
    trials = [_trial(generator, size) for size in PROBED_ITEMS]
    single = [_tried(name, function, trial) for trial in trials]
    vectorised = all(_agrees(function, trial, scores) for trial, scores in zip(trials, single, strict=True))
    plain = CustomEstimand(name, function, vectorised, "central")
    bold = CustomEstimand(name, function, vectorised, "complex")
    return bold if all(_same_slopes(bold, plain, trial) for trial in trials) else plain


def needs_every_pair(estimand: Estimand) -> bool:
    """Whether the estimand has no meaning on a graph that lacks pairs."""
    return isinstance(estimand, CustomEstimand)


def _trial(generator: np.random.Generator, size: int) -> Floats:
    """(PROBES, m, m) shares, closed to writing."""
    upper = np.triu(generator.uniform(0.02, 0.98, (PROBES, size, size)), 1)
    shares: Floats = upper + np.tril(1.0 - np.swapaxes(upper, -1, -2), -1) + 0.5 * np.eye(size)
    shares.setflags(write=False)
    return shares


def _tried(name: str, function: ScoreFunction, trial: Floats) -> Floats:
    """(PROBES, m) scores, matrix by matrix."""
    found = []
    for shares in trial:
        try:
            first, again = np.asarray(function(shares)), np.asarray(function(shares))
        except Exception as error:
            raise InvalidInput(f"estimand {name!r} fails on {len(shares)} items: {error}") from error
        if first.shape != shares.shape[:1] or first.dtype.kind not in "fiu":
            kind = f"{first.dtype} of shape {first.shape}"
            raise InvalidInput(f"estimand {name!r} gives {kind}, expected {len(shares)} real scores")
        if not np.array_equal(first, again, equal_nan=True):
            raise InvalidInput(f"estimand {name!r} gives other scores when it is asked again")
        found.append(_checked(name, first.astype(np.float64)))
    return np.stack(found)


def _checked(name: str, scores: NDArray[Any]) -> Floats:
    if not np.isfinite(scores).all():
        raise InvalidInput(f"estimand {name!r} gives numbers that are not finite")
    return scores


def _agrees(function: ScoreFunction, trial: Floats, scores: Floats) -> bool:
    """Whether a stack of matrices gives the stack of their scores."""
    try:
        found = np.asarray(function(trial))
    except Exception:
        return False
    return found.shape == scores.shape and bool(np.allclose(found, scores, rtol=1e-9, atol=1e-12))


def _same_slopes(bold: CustomEstimand, plain: CustomEstimand, trial: Floats) -> bool:
    size = trial.shape[-1]
    index, left, right = (each.ravel() for each in np.indices((len(trial), size, size)))
    off: Bools = left != right
    place = (index[off], left[off], right[off], Graph.complete(size))
    expected = plain.slope_at(trial, *place)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = bold.slope_at(trial, *place)
    except Exception:
        return False
    return bool(np.abs(found - expected).max() <= CLOSE * (1.0 + np.abs(expected).max()))


def _along(shares: Floats, left: Ints, right: Ints, step: complex) -> NDArray[Any]:
    """Each matrix (r, m, m) with s_jk raised by a step and s_kj lowered."""
    moved: NDArray[Any] = shares.astype(np.result_type(shares, type(step)))
    each = np.arange(left.size)
    moved[each, left, right] += step
    moved[each, right, left] -= step
    return moved
