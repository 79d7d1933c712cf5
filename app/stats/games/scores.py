"""Winners by a score: the items that Borda and Bradley-Terry would choose, and the game a Bradley-Terry model plays."""

from __future__ import annotations

import numpy as np

from app.stats.types import Floats

CLIP = 0.95
"""Payoffs are cut off here before their log-odds are taken."""


def borda_scores(payoffs: Floats) -> Floats:
    """(n, K) mean payoff against the other items."""
    scores: Floats = payoffs.sum(axis=2) / max(payoffs.shape[2] - 1, 1)
    return scores


def bradley_terry_scores(payoffs: Floats, *, clip: float = CLIP) -> Floats:
    """(n, K) r_j = 1/K Σ_k log((1 + A_jk) / (1 - A_jk)), the projection on Bradley-Terry models (r sums to 0).

    Parameters
    ----------
    payoffs : (n, K, K) skew-symmetric.
    clip : |A| is cut off here, below 1.
    """
    scores: Floats = 2.0 * np.arctanh(np.clip(payoffs, -clip, clip)).mean(axis=2)
    return scores


def bradley_terry_game(scores: Floats) -> Floats:
    """(n, K, K) A_jk = tanh((r_j - r_k) / 2), the payoffs of a Bradley-Terry model with scores r (n, K)."""
    game: Floats = np.tanh(0.5 * (scores[:, :, None] - scores[:, None, :]))
    return game


def sole_winner(scores: Floats) -> Floats:
    """(n, K) all mass on the item of the highest score (n, K); the first of equals."""
    lotteries = np.zeros(scores.shape)
    lotteries[np.arange(len(scores)), scores.argmax(axis=1)] = 1.0
    return lotteries
