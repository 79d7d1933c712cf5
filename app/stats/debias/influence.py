"""Influence rows one by one: what an export shows and what a late vote replaces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from app.stats.debias.clusters import Clustering, Term
from app.stats.debias.layout import Layout
from app.stats.debias.one_step import CrossFit, OneStep, Scored, Target, checked_layout, ranked_items, scored_blocks
from app.stats.types import Floats, Ints, Sample

LINES_AT_ONCE = 8192


@dataclass(frozen=True)
class InfluenceRows:
    """Some rows of the estimator, rows without a label included.

    Parameters
    ----------
    row : (b,) ascending within the chunk.
    value : (b, d) F(mu(x_i)) over the ranked items.
    correction : (b, d) Σ of the row's votes' corrections.
    """

    row: Ints
    value: Floats
    correction: Floats

    @property
    def psi(self) -> Floats:
        """(b, d)."""
        return self.value + self.correction


@dataclass(frozen=True)
class InfluenceLines:
    """Lines from which score and standard error follow.

    With N lines in all, score = mean psi and standard_error² = Σ_g (Σ_{i∈g} (psi_i - score))² / N² over the clusters
    of column 0 of `cluster`; where there are three columns, the sums over columns 0 and 1 add and that over column 2
    is taken off. As a rule a line is a row. Where rows are clustered by voter on a context board, a row is one line for
    its value and one more for each of its votes, each part scaled by N/n around the score, so that the same two
    formulas hold.

    Parameters
    ----------
    row : (b,) the estimator's row.
    vote : (b,) the sample's vote that the line is the correction of, -1 where the line is a whole row or its value.
    cluster : (b, 1 or 3) labels.
    psi : (b, d) over the ranked items.
    """

    row: Ints
    vote: Ints
    cluster: Ints
    psi: Floats


def influence_rows(sample: Sample, mu: CrossFit, target: Target) -> Iterator[InfluenceRows]:
    """psi of every row, in chunks of cells; memory does not grow with n."""
    layout = checked_layout(sample)
    items = ranked_items(target.graph)
    for scored in scored_blocks(sample, mu, layout):
        value, gradient = scored.pieces(target)
        rows, loadings = scored.block.rows, _votes_of_rows(sample, layout, scored)
        for start in range(0, rows.size, LINES_AT_ONCE):
            chunk = slice(start, start + LINES_AT_ONCE)
            own = value[layout.row_cell[rows[chunk]] - scored.block.cells.start]
            yield InfluenceRows(rows[chunk], own[:, items], (loadings[chunk] @ gradient)[:, items])


def influence_lines(
    sample: Sample, mu: CrossFit, result: OneStep, *, clustering: Clustering
) -> Iterator[InfluenceLines]:
    """The lines that reproduce a result; see `InfluenceLines`."""
    terms = clustering.terms(sample)
    if not clustering.splits_rows:
        for rows in influence_rows(sample, mu, result.target):
            cluster = np.stack([term.row[rows.row] for term in terms], axis=1)
            yield InfluenceLines(rows.row, np.full(rows.row.size, -1), cluster, rows.psi)
        return
    layout = checked_layout(sample)
    scale = (sample.n_rows + len(sample.votes)) / sample.n_rows
    for scored in scored_blocks(sample, mu, layout):
        for lines in _split_lines(sample, layout, scored, result):
            centre = result.estimate.value
            around = np.where((lines.vote < 0)[:, None], centre, 0.0)
            yield InfluenceLines(lines.row, lines.vote, _labels(terms, lines), centre + scale * (lines.psi - around))


def _votes_of_rows(sample: Sample, layout: Layout, scored: Scored) -> sparse.csr_array:
    """(b, R) summed corrections of each row of a block at each request."""
    block = scored.block
    row = np.searchsorted(block.rows, sample.votes.row[block.votes])
    request = layout.request[block.votes] - block.requests.start
    shape = (block.rows.size, scored.index.size)
    return sparse.csr_array(sparse.coo_array((scored.correction, (row, request)), shape=shape))


def _split_lines(sample: Sample, layout: Layout, scored: Scored, result: OneStep) -> Iterator[InfluenceLines]:
    """Values and corrections of a block apart, not yet scaled."""
    value, gradient = scored.pieces(result.target)
    block, none = scored.block, np.zeros((0, 0), dtype=np.int64)
    for start in range(0, block.rows.size, LINES_AT_ONCE):
        rows = block.rows[start : start + LINES_AT_ONCE]
        own = value[layout.row_cell[rows] - block.cells.start]
        yield InfluenceLines(rows, np.full(rows.size, -1), none, own[:, result.items])
    for start in range(0, block.votes.size, LINES_AT_ONCE):
        votes = block.votes[start : start + LINES_AT_ONCE]
        steps = gradient[layout.request[votes] - block.requests.start]
        parts = scored.correction[start : start + LINES_AT_ONCE, None] * steps
        yield InfluenceLines(sample.votes.row[votes], votes, none, parts[:, result.items])


def _labels(terms: list[Term], lines: InfluenceLines) -> Ints:
    columns = [np.where(lines.vote < 0, term.row[lines.row], term.vote[lines.vote]) for term in terms]
    return np.stack(columns, axis=1)
