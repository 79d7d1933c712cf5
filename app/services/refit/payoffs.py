"""How well each item does against each other: debiased mean shares with standard errors, and the raw counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.services.refit.frame import Frame
from app.services.refit.population import distinct
from app.stats.classical import count_cells
from app.stats.debias.one_step import CrossFit, Target, one_step
from app.stats.debias.support import support_of
from app.stats.gars import Graph
from app.stats.gars.against import Against
from app.stats.types import Floats, Ints, Sample

WORK = 2e10
"""Rows × K³ that the covariances may cost; beyond it a seeded draw of rows speaks for all."""
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
        targets = {item: Target(Against(item), graph) for item in range(whole.n_items)}
        results = one_step(sample, mu, targets, clustering=frame.clustering)
        for item, result in results.items():
            rivals = graph.edges[item]
            share[item, rivals] = result.estimate.value[rivals]
            error[item, rivals] = result.estimate.standard_error[rivals]
        if frame.clustering.least(sample) < 2:
            error[:] = np.nan
        return Payoffs(share, error, counts, results[0].rows_used)
    return Payoffs(share, error, counts, whole.n_rows)


def _seen(sample: Sample) -> Graph:
    """Every pair with a vote, whichever component it is in; an order counts where it has votes."""
    present = support_of(sample).votes > 0
    order = present / np.maximum(present.astype(np.float64) + present.T, 1.0)
    return Graph(order, np.ones(sample.n_items, dtype=np.bool_))


def _affordable(frame: Frame, whole: Sample) -> Sample:
    most = int(WORK / whole.n_items**3)
    cells = distinct(whole.pattern) * frame.n_folds
    if whole.n_rows <= most or cells <= most:
        return whole
    chosen = np.zeros(whole.n_rows, dtype=np.bool_)
    chosen[np.random.default_rng(SEED).permutation(whole.n_rows)[:most]] = True
    return frame.view(chosen)
