"""Equilibria under lambda Σ pi log(K pi): the fixed point pi = softmax(A pi / lambda), by Newton along lambda."""

from __future__ import annotations

import numpy as np
from scipy.special import log_softmax

from app.stats.types import Bools, Floats

MOST_STEPS = 60
CLOSE = 1e-4
"""Differences of logarithms below which their series is more exact."""
WIDEST = 2.0
"""A step may change a share at most by this power of e, weighted by the share itself."""


def entropic(payoffs: Floats, strength: float, tolerance: float) -> tuple[Floats, Floats]:
    """Equilibria (n, K), and their gaps (n,).

    The strength falls by half from one at which the map contracts; each stage starts from the one before.

    Parameters
    ----------
    payoffs : (n, K, K) skew-symmetric.
    strength : lambda > 0.
    tolerance : of the gap.
    """
    n, size = payoffs.shape[:2]
    logs = np.full((n, size), -np.log(size))
    widest = max(float(np.abs(payoffs).max(initial=0.0)), strength)
    stages = int(np.ceil(np.log2(widest / strength)))
    for stage in range(stages, -1, -1):
        at = strength * 2.0**stage
        logs = _newton(payoffs, at, logs, tolerance if stage == 0 else 1e-4 * at)
    return np.exp(logs), _gap(payoffs, strength, logs)


def _newton(payoffs: Floats, strength: float, logs: Floats, tolerance: float) -> Floats:
    """log pi, by damped Newton steps on log pi = log softmax(A pi / lambda)."""
    found = logs.copy()
    gaps = _gap(payoffs, strength, found)
    open_ = np.flatnonzero(gaps > tolerance)
    for _ in range(MOST_STEPS):
        if not open_.size:
            break
        moved = _line(payoffs[open_], strength, found[open_], gaps[open_])
        better = moved[1] < gaps[open_]
        found[open_[better]], gaps[open_[better]] = moved[0][better], moved[1][better]
        open_ = open_[better & (gaps[open_] > tolerance)]
    return found


def _line(payoffs: Floats, strength: float, logs: Floats, gaps: Floats) -> tuple[Floats, Floats]:
    """The longest of a step, half a step, a quarter … that lowers the gap."""
    step = _direction(payoffs, strength, logs)
    wide = (np.exp(logs) * np.abs(step)).max(axis=1, keepdims=True)
    step *= np.minimum(1.0, WIDEST / np.maximum(wide, 1e-300))
    best, least = logs.copy(), gaps.copy()
    open_: Bools = np.ones(len(logs), dtype=np.bool_)
    for halvings in range(12):
        tried = log_softmax(logs[open_] + step[open_] * 0.5**halvings, axis=1)
        found = _gap(payoffs[open_], strength, tried)
        at = np.flatnonzero(open_)[found < least[open_]]
        best[at], least[at] = tried[found < least[open_]], found[found < least[open_]]
        open_[at] = False
        if not open_.any():
            break
    return best, least


def _direction(payoffs: Floats, strength: float, logs: Floats) -> Floats:
    """du of (lambda I - A diag(pi)) du + nu 1 = A pi - lambda log pi, pi'du = 0."""
    size, shares = logs.shape[1], np.exp(logs)
    system = np.zeros((len(logs), size + 1, size + 1))
    system[:, :size, :size] = strength * np.eye(size) - payoffs * shares[:, None, :]
    system[:, :size, size], system[:, size, :size] = 1.0, shares
    right = np.zeros((len(logs), size + 1))
    right[:, :size] = _gains(payoffs, shares) - strength * logs
    step: Floats = np.linalg.solve(system, right[..., None])[:, :size, 0]
    return step


def _gains(payoffs: Floats, shares: Floats) -> Floats:
    gains: Floats = (payoffs @ shares[..., None])[..., 0]
    return gains


def _gap(payoffs: Floats, strength: float, logs: Floats) -> Floats:
    """lambda KL(pi || q), q the best reply, as Σ pi (d - 1 + e^-d) with d = log pi - log q: terms of one sign."""
    shares = np.exp(logs)
    apart = logs - log_softmax(_gains(payoffs, shares) / strength, axis=1)
    # The best reply's share is at most 1, so pi e^-d is no overflow where pi is 0 and d far below it.
    terms = shares * (apart - 1.0) + np.exp(logs - apart)
    near = np.abs(apart) < CLOSE
    terms[near] = shares[near] * apart[near] ** 2 * (0.5 - apart[near] / 6.0)
    gap: Floats = strength * terms.sum(axis=1)
    return gap
