"""Debiased mean shares of all pairs with their standard errors, from every vote and one pass over mu.

The mean of s_jk is the score of an estimand with one component a pair. No covariance between these is asked for, and a
vote corrects one of them alone: corrections are summed as sparse rows, values of contexts as dense ones, and only the
squares of clusters that hold both need both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from scipy import sparse

from app.stats.debias.clusters import Clustering, ClusterMap, Loadings
from app.stats.debias.layout import SHARD, Block, Layout, joined
from app.stats.debias.one_step import CrossFit, checked_layout, evaluated_blocks, thinning_of
from app.stats.debias.thinning import Thinning
from app.stats.debias.weights import sums_by
from app.stats.gars import Graph
from app.stats.types import Floats, Ints, Sample

HELD = 4_000_000
"""Numbers of clusters' values (g, P) held at once."""
ORIGIN = 0.5


@dataclass(frozen=True, slots=True)
class PairShares:
    """Mean shares of the pairs of a graph.

    Parameters
    ----------
    share, error : (K, K) debiased mean of s_jk and its standard error, NaN off the edges.
    rows_used : rows that mu of all pairs was averaged over; fewer than there are on a sample that was thinned.
    """

    share: Floats
    error: Floats
    rows_used: int


def pair_shares(sample: Sample, mu: CrossFit, graph: Graph, *, clustering: Clustering) -> PairShares:
    """One-step means of s_jk over all rows, with the clustered standard error of each.

    Parameters
    ----------
    sample : rows, votes, folds.
    mu : the fold models.
    graph : the pairs and orders that count, whatever component they are in.
    clustering : of the variance.

    Raises
    ------
    InvalidInput
        Without rows, or with a propensity outside (0, 1].
    """
    pairs, thinning = _Pairs.of(graph), thinning_of(sample, mu)
    layout = checked_layout(sample, thinning, shard=_shard_size(sample, pairs, thinning))
    row_shard, n = layout.shard_of_rows(), sample.n_rows
    clusters = [ClusterMap(term, row_shard, sample.votes.row) for term in clustering.terms(sample)]
    sums = [_Squares(each, pairs.size, 1 if thinning is None else 2) for each in clusters]
    value, correction = np.zeros(pairs.size), np.zeros(pairs.size)
    for shard in _shards(sample, mu, layout, pairs=pairs, thinning=thinning):
        value += shard.mass @ shard.values
        correction += shard.steps.T @ shard.moved
        for own, each in zip(sums, clusters, strict=True):
            own.add(each.loadings(layout, shard.block, shard.correction, thinning), shard)
    shift = (value + correction) / n
    shifts = np.stack([shift] if thinning is None else [value / n, correction / n])
    variance = np.sum([each.total(shifts) for each in sums], axis=0) / n**2
    error = pairs.table(np.sqrt(np.maximum(variance, 0.0)))
    return PairShares(pairs.shares(ORIGIN + shift), error, n if thinning is None else thinning.rows_used)


@dataclass(frozen=True)
class _Pairs:
    """The unordered pairs j < k of a graph (P of them).

    Parameters
    ----------
    graph : they are its edges.
    first, second : (P,) their items.
    number : (K, K) the place of either order among them, 0 off the edges.
    sign : (K, K) ds/dp of either order.
    """

    graph: Graph
    first: Ints
    second: Ints
    number: Ints
    sign: Floats

    @classmethod
    def of(cls, graph: Graph) -> _Pairs:
        first, second = np.nonzero(np.triu(graph.edges))
        number = np.zeros(graph.edges.shape, dtype=np.int64)
        number[first, second] = number[second, first] = np.arange(first.size)
        sign = np.where(np.tri(graph.n_items, k=-1, dtype=np.bool_), -graph.order, graph.order)
        return cls(graph, first, second, number, sign)

    @property
    def size(self) -> int:
        return int(self.first.size)

    def values(self, p: Floats) -> Floats:
        """(u, P) s_jk - ½ of scores (u, K, K)."""
        order, first, second = self.graph.order, self.first, self.second
        ahead, behind = order[first, second], order[second, first]
        values: Floats = ahead * p[:, first, second] + behind * (1.0 - p[:, second, first]) - ORIGIN
        return values

    def steps(self, left: Ints, right: Ints) -> sparse.csr_array:
        """(R, P) what a correction of p at each ordered pair (R,) adds to each share."""
        entries = (self.sign[left, right], self.number[left, right], np.arange(left.size + 1))
        return sparse.csr_array(entries, shape=(left.size, self.size))

    def shares(self, of_pair: Floats) -> Floats:
        """(K, K) of the shares s_jk, j < k, and what is left of 1 for s_kj."""
        shares = self.table(of_pair)
        shares[self.second, self.first] = 1.0 - of_pair
        return shares

    def table(self, of_pair: Floats) -> Floats:
        """(K, K) of a number per pair, alike in both orders; NaN off the edges."""
        table = np.full(self.sign.shape, np.nan)
        table[self.first, self.second] = table[self.second, self.first] = of_pair
        return table


@dataclass(frozen=True)
class _Shard:
    """Blocks whose clusters are summed together.

    Parameters
    ----------
    block : all of them as one.
    correction : (v,) of each vote.
    cells : (h,) places of the cells with values.
    values : (h, P) theirs, less ½.
    mass : (h,) rows of theirs, stretched where thinned.
    steps : (R, P) see `_Pairs.steps`.
    moved : (R,) summed corrections of each request.
    """

    block: Block
    correction: Floats
    cells: Ints
    values: Floats
    mass: Floats
    steps: sparse.csr_array
    moved: Floats


def _shards(
    sample: Sample, mu: CrossFit, layout: Layout, *, pairs: _Pairs, thinning: Thinning | None
) -> Iterator[_Shard]:
    evaluated = evaluated_blocks(sample, mu, layout, thinning)
    for _, shard in groupby(evaluated, key=lambda scored: scored.block.shard):
        blocks, corrections, cells, values = [], [], [], []
        for scored in shard:
            blocks.append(scored.block)
            corrections.append(scored.correction)
            cells.append(scored.block.cells.start - blocks[0].cells.start + scored.shown)
            values.append(pairs.values(scored.p))
        block, correction, shown = joined(blocks), np.concatenate(corrections), np.concatenate(cells)
        requests, at = block.requests, layout.request[block.votes] - block.requests.start
        row = layout.row_cell[block.rows] - block.cells.start
        weight = np.ones(row.size) if thinning is None else thinning.stretch(block.rows)
        yield _Shard(
            block,
            correction,
            shown,
            np.concatenate(values),
            sums_by(row, weight, block.cells.stop - block.cells.start)[shown],
            pairs.steps(layout.left[requests], layout.right[requests]),
            sums_by(at, correction, requests.stop - requests.start),
        )


def _shard_size(sample: Sample, pairs: _Pairs, thinning: Thinning | None) -> int:
    """Shards as large as have room for values (h, P) in the place of pieces (c + R, K)."""
    drawn = 1.0 if thinning is None else thinning.rows_used / sample.n_rows
    return int(SHARD * min(sample.n_items / max(pairs.size * drawn, 1.0), 1.0))


class _Squares:
    """Σ_g t_g² of clusters, a component a pair; see `ClusterSums`, whose diagonal this is.

    Parameters
    ----------
    clusters : the term.
    size : P.
    shifts : s, how many numbers of rows are counted.
    """

    def __init__(self, clusters: ClusterMap, size: int, shifts: int) -> None:
        self._sign = clusters.sign
        self._square, self._cross = np.zeros(size), np.zeros((shifts, size))
        self._count = np.zeros((shifts, shifts))
        self._open = np.zeros((clusters.n_open, size))
        self._open_rows = np.zeros((shifts, clusters.n_open))

    def add(self, loadings: Loadings, shard: _Shard) -> None:
        """Add a shard's clusters."""
        self._add_closed(loadings.closed, loadings.counting, shard)
        if loadings.label.size:
            cells, steps = _apart(loadings.open, shard)
            self._open[loadings.label] += cells @ shard.values
            place = steps.tocoo()
            np.add.at(self._open, (loadings.label[place.row], place.col), place.data)
            self._open_rows[:, loadings.label] += loadings.counting @ loadings.open.T

    def total(self, shifts: Floats) -> Floats:
        """(P,) the signed sum once the shifts (s, P), theta - origin or its parts, are known."""
        square = self._square + (self._open**2).sum(axis=0)
        cross = self._cross + self._open_rows @ self._open
        count = self._count + self._open_rows @ self._open_rows.T
        total: Floats = square - 2.0 * (cross * shifts).sum(axis=0) + (shifts * (count @ shifts)).sum(axis=0)
        return self._sign * total

    def _add_closed(self, closed: sparse.csr_array, counting: Floats, shard: _Shard) -> None:
        cells, steps = _apart(closed, shard)
        rows = counting @ closed.T
        self._square += steps.power(2).sum(axis=0)
        self._cross += rows @ steps
        self._count += rows @ rows.T
        valued = np.flatnonzero(np.diff(cells.indptr))
        size = max(HELD // max(self._square.size, 1), 1)
        for some in (valued[start : start + size] for start in range(0, valued.size, size)):
            values = cells[some] @ shard.values
            self._square += (values**2).sum(axis=0) + 2.0 * steps[some].multiply(values).sum(axis=0)
            self._cross += rows[:, some] @ values


def _apart(matrix: sparse.csr_array, shard: _Shard) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Loadings of clusters (g, c + R) on the cells with values, (g, h), and on the pairs by their votes, (g, P)."""
    width = shard.block.cells.stop - shard.block.cells.start
    cells = sparse.csr_array(matrix[:, shard.cells])
    cells.eliminate_zeros()
    return cells, sparse.csr_array(matrix[:, width : width + shard.moved.size] @ shard.steps)
