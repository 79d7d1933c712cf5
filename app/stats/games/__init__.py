"""Symmetric games on payoffs between items: equilibria with certificates, lotteries, and what they are worth."""

from app.stats.games.equilibrium import Equilibria, equilibria
from app.stats.games.game import SOFTNESS, Budget, Regulariser, Terms
from app.stats.games.lottery import frontier, programmed, robust_lottery
from app.stats.games.metrics import (
    SHARE,
    exploitability,
    gap,
    head_to_head,
    support_f1,
    total_variation,
    win_rate,
    winners,
)
from app.stats.games.scores import borda_scores, bradley_terry_game, bradley_terry_scores, sole_winner
from app.stats.games.simplex import project

__all__ = [
    "SHARE",
    "SOFTNESS",
    "Budget",
    "Equilibria",
    "Regulariser",
    "Terms",
    "borda_scores",
    "bradley_terry_game",
    "bradley_terry_scores",
    "equilibria",
    "exploitability",
    "frontier",
    "gap",
    "head_to_head",
    "programmed",
    "project",
    "robust_lottery",
    "sole_winner",
    "support_f1",
    "total_variation",
    "win_rate",
    "winners",
]
