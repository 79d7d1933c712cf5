"""Which parts of the influence function vary together, and the sums that give their variance.

An influence row psi_i - theta is a value F(mu(x_i)) - theta and one correction per vote. A clustering labels all of
them; Σ_g (Σ of cluster g)² / n² is the variance it speaks for, and two-way clustering adds and subtracts three of
them (Cameron, Gelbach and Miller, 2011).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from app.stats.debias.folds import ClusterBy
from app.stats.debias.layout import Block, Layout
from app.stats.debias.propensity import Unit
from app.stats.debias.thinning import Thinning
from app.stats.debias.weights import sums_by
from app.stats.types import Floats, Ints, Sample

ROWS_AT_ONCE = 8192


@dataclass(frozen=True, slots=True)
class Clustering:
    """What the variance is clustered by.

    Parameters
    ----------
    by : `context`, `voter`, or `both`: Σ_context + Σ_voter - Σ_finest.
    unit : on battle boards a row has one voter and belongs to that voter whole; on context boards its value is a
        cluster of its own and each vote's correction belongs to the vote's voter.
    fixed : the population is these very contexts: rows are not clustered by context.
    """

    by: ClusterBy = "context"
    unit: Unit = "battle"
    fixed: bool = False

    @property
    def splits_rows(self) -> bool:
        """Rows fall into parts that belong to different clusters."""
        return self.unit == "context" and self.by != "context"

    def terms(self, sample: Sample) -> list[Term]:
        """The signed terms of the covariance."""
        if self.by == "context":
            return [_by_row(sample, _own(sample) if self.fixed else sample.context)]
        voter = _split_by_voter(sample) if self.splits_rows else _by_row(sample, _voter_of_row(sample))
        if self.by == "voter" or self.fixed:
            return [voter]
        finest = _finest_parts(sample) if self.splits_rows else _by_row(sample, _own(sample))
        return [_by_row(sample, sample.context), voter, Term(finest.row, finest.vote, -1.0)]

    def least(self, sample: Sample) -> int:
        """The fewest clusters of any term: the scatter between clusters says nothing where there is one."""
        counts = [
            np.unique(label).size for term in self.terms(sample) if term.sign > 0 for label in (term.row, term.vote)
        ]
        return min(counts, default=0)


@dataclass(frozen=True, slots=True)
class Term:
    """Cluster labels of the values (n,) and of the corrections (m,), and the sign of their sum of squares."""

    row: Ints
    vote: Ints
    sign: float = 1.0


def _own(sample: Sample) -> Ints:
    return np.arange(sample.n_rows)


def _by_row(sample: Sample, label: Ints) -> Term:
    return Term(label, label[sample.votes.row])


def _voter_of_row(sample: Sample) -> Ints:
    """The voter of each row's first vote; rows without a vote are on their own."""
    size = int(sample.votes.voter.max(initial=-1)) + 1
    label = size + np.arange(sample.n_rows)
    label[sample.votes.row[::-1]] = sample.votes.voter[::-1]
    return label


def _split_by_voter(sample: Sample) -> Term:
    return Term(_own(sample), sample.n_rows + sample.votes.voter)


def _finest_parts(sample: Sample) -> Term:
    """Each value, and each voter's corrections of one row, on their own."""
    stride = int(sample.votes.voter.max(initial=0)) + 1
    _, part = np.unique(sample.votes.row * stride + sample.votes.voter, return_inverse=True)
    return Term(_own(sample), sample.n_rows + part.astype(np.int64))


@dataclass(frozen=True)
class Loadings:
    """A shard's clusters as combinations of its cells' values and its requests' gradients.

    Parameters
    ----------
    closed : (g, c + R) clusters that lie within the shard, up to a rotation that keeps closedᵀ closed. Of a thinned
        sample there is one more column, the number of the cluster's rows.
    open : (h, c + R) parts of clusters that other shards share, alike.
    label : (h,) which of those clusters, 0 .. (number of open clusters) - 1.
    counting : (s, c + R) the columns that count how much a cluster takes part in each of the s shifts of its sum: the
        cells, and where thinned the number of rows.
    """

    closed: sparse.csr_array
    open: sparse.csr_array
    label: Ints
    counting: Floats


class ClusterMap:
    """A term's labels, made compact, with the clusters that span shards told apart.

    Parameters
    ----------
    term : the labels.
    row_shard : (n,) the shard of each row.
    vote_row : (m,) the row of each vote.
    """

    def __init__(self, term: Term, row_shard: Ints, vote_row: Ints) -> None:
        _, label = np.unique(np.concatenate([term.row, term.vote]), return_inverse=True)
        shard = np.concatenate([row_shard, row_shard[vote_row]])
        first, last = np.full(label.max() + 1, shard.max()), np.zeros(label.max() + 1, dtype=np.int64)
        np.minimum.at(first, label, shard)
        np.maximum.at(last, label, shard)
        spans = first < last
        self.sign = term.sign
        self.n_open = int(spans.sum())
        self._row, self._vote = label[: term.row.size], label[term.row.size :]
        self._open = np.where(spans, np.cumsum(spans) - 1, -1)

    def loadings(self, layout: Layout, block: Block, correction: Floats, thinning: Thinning | None = None) -> Loadings:
        """Gather a shard: every row counts 1 in its cell's column, every vote its `correction` in its request's.

        Of a thinned sample the rows drawn count n/M in their cells' columns, and all of them 1 in the last.
        """
        cells, requests = block.cells, block.requests
        n_cells, width = cells.stop - cells.start, cells.stop - cells.start + requests.stop - requests.start
        label = [self._row[block.rows], self._vote[block.votes]]
        column = [layout.row_cell[block.rows] - cells.start, layout.request[block.votes] - requests.start + n_cells]
        value = [np.ones(block.rows.size) if thinning is None else thinning.stretch(block.rows), correction]
        counting = [np.arange(width) < n_cells]
        if thinning is not None:
            label, column = [*label, label[0]], [*column, np.full(block.rows.size, width)]
            value, width = [*value, np.ones(block.rows.size)], width + 1
            counting = [np.arange(width) < n_cells, np.arange(width) == width - 1]
        used, at = np.unique(np.concatenate(label), return_inverse=True)
        entries = (np.concatenate(value), (at, np.concatenate(column)))
        matrix = sparse.csr_array(sparse.coo_array(entries, shape=(used.size, width)))
        place = self._open[used]
        return Loadings(
            _condensed(matrix[place < 0]), matrix[place >= 0], place[place >= 0], np.stack(counting).astype(np.float64)
        )


def _condensed(matrix: sparse.csr_array) -> sparse.csr_array:
    """Replace rows with the same one or two columns by two rows with the same outer products.

    A board without covariates has few distinct (cell, pair) and very many rows: their 2 × 2 Gram matrices say all.
    """
    matrix.sum_duplicates()
    size = np.diff(matrix.indptr)
    start, width = matrix.indptr[:-1], matrix.shape[1]
    short = (size == 1) | (size == 2)
    begin, two = start[short], size[short] == 2
    a, first = matrix.data[begin], matrix.indices[begin].astype(np.int64)
    b = np.where(two, matrix.data[begin + two], 0.0)
    second = np.where(two, matrix.indices[begin + two], first).astype(np.int64)
    key, group = np.unique(first * width + second, return_inverse=True)
    if 4 * key.size > begin.size:
        return matrix
    left = sums_by(group, a * a, key.size)
    slope = np.divide(sums_by(group, a * b, key.size), left, out=np.zeros_like(left), where=left > 0)
    rest = sums_by(group, (b - slope[group] * a) ** 2, key.size)
    root, each = np.sqrt(left), np.arange(key.size)
    entries = np.concatenate([root, root * slope, np.sqrt(rest)])
    row = np.concatenate([each, each, key.size + each])
    column = np.concatenate([key // width, key % width, key % width])
    gram = sparse.coo_array((entries, (row, column)), shape=(2 * key.size, width))
    return sparse.csr_array(sparse.vstack([sparse.csr_array(gram), matrix[~short]]))


class ClusterSums:
    """Σ_g t_g t_gᵀ of clusters t_g = (Σ psi of g) - n_g theta, gathered around an origin before theta is known.

    Of a thinned sample t_g = (Σ stretched psi of g) - m_g mean F - n_g mean C, m_g the stretched number of its rows.

    Parameters
    ----------
    clusters : the term.
    size : d.
    shifts : s, how many numbers of rows are counted.
    """

    def __init__(self, clusters: ClusterMap, size: int, *, shifts: int = 1) -> None:
        self._sign = clusters.sign
        self._square = np.zeros((size, size))
        self._cross = np.zeros((shifts, size))
        self._count = np.zeros((shifts, shifts))
        self._open = np.zeros((clusters.n_open, size))
        self._open_rows = np.zeros((shifts, clusters.n_open))

    def add(self, loadings: Loadings, pieces: Floats) -> None:
        """Add a shard whose cells have values - origin, and requests gradients, `pieces` (c + R, d)."""
        for start in range(0, loadings.closed.shape[0], ROWS_AT_ONCE):
            part = loadings.closed[start : start + ROWS_AT_ONCE]
            self._absorb(_sums(part, pieces), _rows_in(part, loadings.counting))
        if loadings.label.size:
            self._open[loadings.label] += _sums(loadings.open, pieces)
            self._open_rows[:, loadings.label] += _rows_in(loadings.open, loadings.counting)

    def total(self, shifts: Floats) -> Floats:
        """(d, d) the signed sum once the shifts (s, d), theta - origin or its parts, are known; closes the sums."""
        self._absorb(self._open, self._open_rows)
        self._open, self._open_rows = self._open[:0], self._open_rows[:, :0]
        total = self._square
        for at, shift in enumerate(shifts):
            cross = np.outer(self._cross[at], shift)
            total = total - cross - cross.T
        for one, first in enumerate(shifts):
            for other, second in enumerate(shifts):
                total = total + self._count[one, other] * np.outer(first, second)
        return self._sign * total

    def _absorb(self, totals: Floats, rows: Floats) -> None:
        self._square += totals.T @ totals
        for at, each in enumerate(rows):
            self._cross[at] += each @ totals
            self._count[at] += [float(each @ other) for other in rows]


def _sums(matrix: sparse.csr_array, pieces: Floats) -> Floats:
    """Of each cluster (g, d); a column beyond the pieces only counts rows."""
    sums: Floats = (matrix if matrix.shape[1] == len(pieces) else matrix[:, : len(pieces)]) @ pieces
    return sums


def _rows_in(matrix: sparse.csr_array, counting: Floats) -> Floats:
    """(s, g)."""
    rows: Floats = np.stack([matrix @ each for each in counting])
    return rows
