"""How well each item does against each other: debiased mean shares with standard errors, and the raw counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.services.refit.frame import Frame
from app.stats.classical import count_cells
from app.stats.debias.one_step import CrossFit
from app.stats.debias.pair_shares import pair_shares
from app.stats.debias.support import support_of
from app.stats.gars import Graph
from app.stats.types import Floats, Ints, Sample

HELD = 200_000_000
"""Voters × K² whose sums fit into memory, where the variance is clustered by voter."""
SEED = 20260121


@dataclass(frozen=True)
class Payoffs:
    """Pairwise results.

    Parameters
    ----------
    share : (K, K) debiased mean of s_jk, NaN on pairs without a vote.
    error : (K, K) standard errors, alike; NaN too where all rows are of one cluster.
    counts : (K, K, C) votes of each ordered pair and category.
    rows_used : rows behind the shares.
    """

    share: Floats
    error: Floats
    counts: Ints
    rows_used: int


def payoffs(frame: Frame, mu: CrossFit) -> Payoffs:
    """Payoffs of the whole board."""
    whole = frame.view()
    counts = count_cells(whole.votes, whole.n_items, whole.rule.n_categories).astype(np.int64)
    share = np.full((whole.n_items, whole.n_items), np.nan)
    error = share.copy()
    if whole.n_items > 1 and len(whole.votes):
        sample, graph = _affordable(frame, whole), _seen(whole)
        found = pair_shares(sample, mu, graph, clustering=frame.clustering)
        alone = frame.clustering.least(sample) < 2
        return Payoffs(found.share, error if alone else found.error, counts, found.rows_used)
    return Payoffs(share, error, counts, whole.n_rows)


def _seen(sample: Sample) -> Graph:
    """Every pair with a vote, whichever component it is in; an order counts where it has votes."""
    present = support_of(sample).votes > 0
    order = present / np.maximum(present.astype(np.float64) + present.T, 1.0)
    return Graph(order, np.ones(sample.n_items, dtype=np.bool_))


def _affordable(frame: Frame, whole: Sample) -> Sample:
    """All rows; where the sums of all voters who have several votes do not fit, a seeded draw of as many rows as do."""
    most = HELD // whole.n_items**2
    if frame.clustering.by == "context" or np.count_nonzero(np.bincount(whole.votes.voter) > 1) <= most:
        return whole
    chosen = np.zeros(whole.n_rows, dtype=np.bool_)
    chosen[np.random.default_rng(SEED).permutation(whole.n_rows)[:most]] = True
    return frame.view(chosen)
