"""What being shown first is worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.debias.clusters import Clustering
from app.stats.debias.one_step import CrossFit, checked_layout, evaluated_blocks, thinning_of
from app.stats.debias.support import vote_counts
from app.stats.diagnostics.pairwise import clustered_error
from app.stats.types import Floats, Sample


@dataclass(frozen=True, slots=True)
class Share:
    """An estimated share or difference of shares.

    Parameters
    ----------
    value, standard_error : of it.
    size : pairs or votes behind it.
    """

    value: float
    standard_error: float
    size: int


def first_advantage(sample: Sample, mu: CrossFit, *, clustering: Clustering) -> Share | None:
    """E over contexts of the mean over pairs of p_jk + p_kj - 1: share won when shown first, less when shown second.

    A debiased one-step of that linear functional, over the pairs voted on in both orders; None where there is none.

    Parameters
    ----------
    sample : rows, votes, folds.
    mu : the fold models.
    clustering : of the variance.
    """
    votes = vote_counts(sample.votes.left, sample.votes.right, sample.n_items)
    both = (votes > 0) & (votes.T > 0)
    pairs = int(both.sum()) // 2
    if not pairs:
        return None
    weight = both / pairs
    of_row, correction = _advantages(sample, mu, weight)
    mean = float(of_row.sum() + correction.sum()) / sample.n_rows
    error = clustered_error(clustering, sample, (of_row - mean) / sample.n_rows, correction / sample.n_rows)
    return Share(mean, error, pairs)


def _advantages(sample: Sample, mu: CrossFit, weight: Floats) -> tuple[Floats, Floats]:
    """(n,) Σ weight p - 1 of each row, stretched around its mean where the sample is thinned, and (m,) corrections."""
    thinning = thinning_of(sample, mu)
    layout = checked_layout(sample, thinning)
    value, correction = np.zeros(layout.fold.size), np.zeros(len(sample.votes))
    for scored in evaluated_blocks(sample, mu, layout, thinning):
        value[scored.block.cells.start + scored.shown] = np.tensordot(scored.p, weight, 2) - 1.0
        slope = weight[sample.votes.left[scored.block.votes], sample.votes.right[scored.block.votes]]
        correction[scored.block.votes] = scored.correction * slope
    of_row = value[layout.row_cell]
    if thinning is None:
        return of_row, correction
    centre = of_row[thinning.drawn].mean()
    return centre + thinning.stretch(np.arange(sample.n_rows)) * (of_row - centre), correction


def left_share(sample: Sample, *, clustering: Clustering) -> Share | None:
    """Share of the decisive votes that went to the item shown first, as counted; None without a decisive vote.

    Parameters
    ----------
    sample : rows and votes.
    clustering : of the variance.
    """
    lean = (sample.rule.first - sample.rule.second)[sample.votes.outcome]
    decided = int(np.count_nonzero(lean))
    if not decided:
        return None
    value = float(np.count_nonzero(lean > 0)) / decided
    residual: Floats = np.where(lean == 0, 0.0, (lean > 0) - value) / decided
    error = clustered_error(clustering, sample, np.zeros(sample.n_rows), residual)
    return Share(value, error, decided)
