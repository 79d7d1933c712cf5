"""What a ranking rests on and whether its assumptions show: pure parts of a board's diagnostics."""

from app.stats.diagnostics.agreement import kendall, rank_changes
from app.stats.diagnostics.calibration import Calibration, calibrate
from app.stats.diagnostics.comparators import classical_chances, decisive, log_losses, share_chances
from app.stats.diagnostics.drift import Drift, drift_of_items
from app.stats.diagnostics.overlap import Overlap, heaviest, overlap_of_items, overlap_of_pairs, weights_of
from app.stats.diagnostics.pairwise import PairMeans, clustered_error, pair_means
from app.stats.diagnostics.position import Share, first_advantage, left_share
from app.stats.diagnostics.transitivity import SkewTest, Triples, count_triples, skew_test, strongest_cycles
from app.stats.diagnostics.voters import Lean, Voters, discoveries, judge_voters, taste_variance

__all__ = [
    "Calibration",
    "Drift",
    "Lean",
    "Overlap",
    "PairMeans",
    "Share",
    "SkewTest",
    "Triples",
    "Voters",
    "calibrate",
    "classical_chances",
    "clustered_error",
    "count_triples",
    "decisive",
    "discoveries",
    "drift_of_items",
    "first_advantage",
    "heaviest",
    "judge_voters",
    "kendall",
    "left_share",
    "log_losses",
    "overlap_of_items",
    "overlap_of_pairs",
    "pair_means",
    "rank_changes",
    "share_chances",
    "skew_test",
    "strongest_cycles",
    "taste_variance",
    "weights_of",
]
