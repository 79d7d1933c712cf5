"""Which pairs to label: optimal propensities, the policy that serves them, and draws from it (DMLRank, Section 5)."""

from app.stats.acquisition.allocation import Mode
from app.stats.acquisition.beliefs import Beliefs, reliability
from app.stats.acquisition.criteria import Design, Objective, contrast_weight, d_weight, e_weight
from app.stats.acquisition.draws import draw
from app.stats.acquisition.pairs import pair_row, pair_square, sides
from app.stats.acquisition.policy import Policy, Rules, floor_of, reachable, uniform_propensity

__all__ = [
    "Beliefs",
    "Design",
    "Mode",
    "Objective",
    "Policy",
    "Rules",
    "contrast_weight",
    "d_weight",
    "draw",
    "e_weight",
    "floor_of",
    "pair_row",
    "pair_square",
    "reachable",
    "reliability",
    "sides",
    "uniform_propensity",
]
