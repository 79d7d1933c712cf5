"""Relative feedback on menus of any size: ordered partitions, aggregators, debiased payoffs (NashEval, Section 5).

partitions   tiers of a vote, and its verdicts on pairs
menus        menus, their cells and pairs, votes, the protocol of outcome models
aggregators  a pair's payoff from its margins on all menus
pseudo       cross-fitted margins, pseudo-outcomes, mean payoffs
"""

from app.stats.feedback.aggregators import Aggregator, uniform
from app.stats.feedback.menus import (
    MenuLearner,
    MenuModel,
    Menus,
    MenuSample,
    MenuVotes,
    all_menus,
    estimated_propensities,
    menus_of,
    skew,
)
from app.stats.feedback.partitions import OUTSIDE, Tiers, partial, verdicts, winner
from app.stats.feedback.pseudo import (
    Corrections,
    averaged,
    corrections,
    cross_fitted,
    fold_models,
    mean_payoffs,
)

__all__ = [
    "OUTSIDE",
    "Aggregator",
    "Corrections",
    "MenuLearner",
    "MenuModel",
    "MenuSample",
    "MenuVotes",
    "Menus",
    "Tiers",
    "all_menus",
    "averaged",
    "corrections",
    "cross_fitted",
    "estimated_propensities",
    "fold_models",
    "mean_payoffs",
    "menus_of",
    "partial",
    "skew",
    "uniform",
    "verdicts",
    "winner",
]
