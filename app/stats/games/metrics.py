"""What a lottery is worth (NashEval, Appendix I.1): exploitability, gap, support, values, distances, prices."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, xlogy

from app.stats.games.game import Terms, checked
from app.stats.games.simplex import project
from app.stats.types import Bools, Floats

SHARE = 1e-3
"""Items with a larger share are winners."""


def exploitability(payoffs: Floats, lotteries: Floats) -> Floats:
    """(n,) max_j (A pi)_j: what the best single rival gains against each lottery; >= 0, 0 at a maximal lottery.

    Parameters
    ----------
    payoffs : (n, K, K) skew-symmetric.
    lotteries : (n, K), or (K,) for one lottery in all games.
    """
    return _most(_against(payoffs, lotteries))


def gap(payoffs: Floats, lotteries: Floats, terms: Terms) -> Floats:
    """(n,) G(pi; A) = max_q q'A pi - Omega(q) + Omega(pi), 0 at the equilibrium alone (NashEval, Appendix C.4).

    Parameters
    ----------
    payoffs : (n, K, K) skew-symmetric.
    lotteries : (n, K).
    terms : strength, regulariser and costs; the budget is left out.
    """
    gains, strength = _against(checked(payoffs, terms), lotteries), terms.strength
    if strength == 0.0:
        return _most(gains)
    if terms.regulariser == "kl":
        # lambda KL(pi || q) of the best reply q = softmax(gains / lambda).
        reply = gains / strength
        spread = xlogy(lotteries, lotteries) - lotteries * reply
        entropic: Floats = strength * (spread.sum(axis=1) + logsumexp(reply, axis=1))
        return entropic
    step = project(gains / strength) - lotteries
    value: Floats = (step * (gains - strength * lotteries)).sum(axis=1) - 0.5 * strength * (step**2).sum(axis=1)
    return value


def winners(lotteries: Floats) -> Bools:
    """(n, K) items with a share above .001."""
    winning: Bools = lotteries > SHARE
    return winning


def support_f1(lotteries: Floats, truth: Floats) -> Floats:
    """(n,) F1 of the winners of `lotteries` (n, K) against those of `truth` (n, K)."""
    own, other = winners(lotteries), winners(truth)
    score: Floats = 2.0 * (own & other).sum(axis=1) / (own.sum(axis=1) + other.sum(axis=1))
    return score


def head_to_head(payoffs: Floats, lotteries: Floats, rivals: Floats) -> Floats:
    """(n,) pi'A rho: what each lottery gains against its rival.

    Parameters
    ----------
    payoffs : (n, K, K).
    lotteries, rivals : (n, K), or (K,) for one in all games.
    """
    value: Floats = (_against(payoffs, rivals) * lotteries).sum(axis=1)
    return value


def win_rate(payoffs: Floats, lotteries: Floats) -> Floats:
    """(n,) chance that the drawn item beats one of the K items drawn evenly; ties, and itself, earn nothing."""
    rate: Floats = ((payoffs > 0).mean(axis=2) * lotteries).sum(axis=1)
    return rate


def total_variation(lotteries: Floats) -> Floats:
    """(n, n) half the sum of absolute differences between every two lotteries (n, K); in [0, 1]."""
    distances: Floats = 0.5 * np.abs(lotteries[:, None, :] - lotteries).sum(axis=-1)
    return distances


def _most(gains: Floats) -> Floats:
    most: Floats = gains.max(axis=1)
    return most


def _against(payoffs: Floats, lotteries: Floats) -> Floats:
    """(n, K) A pi."""
    gains: Floats = (payoffs @ np.broadcast_to(lotteries, payoffs.shape[:2])[..., None])[..., 0]
    return gains
