"""Debiasing: folds, propensities, support, and the cross-fitted one-step estimator."""

from app.stats.debias.balance import Balance, check_balance, drawable_pairs
from app.stats.debias.clusters import Clustering
from app.stats.debias.folds import Folds, RowContent, assign_folds, canonical_order, content_hash, mix
from app.stats.debias.influence import InfluenceLines, InfluenceRows, influence_lines, influence_rows
from app.stats.debias.moments import Moments
from app.stats.debias.one_step import CrossFit, OneStep, Target, effective_votes, one_step
from app.stats.debias.propensity import (
    Exposure,
    KeptRates,
    Labels,
    corrected_for_exclusions,
    eligibility_share,
    eligible_rows,
    estimated_propensities,
    used_propensities,
)
from app.stats.debias.restricted import Policy, decisive, pair_frequencies, restricted
from app.stats.debias.scores import Scores, estimate
from app.stats.debias.segments import segment
from app.stats.debias.support import Pairs, Support, automatic_pairs, support_of, support_statuses, vote_counts
from app.stats.debias.weights import first_of_event, vote_weights

__all__ = [
    "Balance",
    "Clustering",
    "CrossFit",
    "Exposure",
    "Folds",
    "InfluenceLines",
    "InfluenceRows",
    "KeptRates",
    "Labels",
    "Moments",
    "OneStep",
    "Pairs",
    "Policy",
    "RowContent",
    "Scores",
    "Support",
    "Target",
    "assign_folds",
    "automatic_pairs",
    "canonical_order",
    "check_balance",
    "content_hash",
    "corrected_for_exclusions",
    "decisive",
    "drawable_pairs",
    "effective_votes",
    "eligibility_share",
    "eligible_rows",
    "estimate",
    "estimated_propensities",
    "first_of_event",
    "influence_lines",
    "influence_rows",
    "mix",
    "one_step",
    "pair_frequencies",
    "restricted",
    "segment",
    "support_of",
    "support_statuses",
    "used_propensities",
    "vote_counts",
    "vote_weights",
]
