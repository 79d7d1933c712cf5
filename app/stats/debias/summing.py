"""Mean and clustered covariance of psi, from pieces that blocks of cells evaluate."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, TypeVar

import numpy as np

from app.stats.debias.clusters import Clustering, ClusterMap, ClusterSums
from app.stats.debias.layout import Block, Layout, joined
from app.stats.debias.thinning import Thinning
from app.stats.debias.weights import sums_by
from app.stats.gars import Estimand, Graph
from app.stats.types import Estimate, Floats, Ints, Sample

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Target:
    """An estimand on a graph."""

    estimand: Estimand
    graph: Graph


@dataclass(frozen=True)
class OneStep:
    """A debiased estimate and its parts (d ranked items).

    Parameters
    ----------
    target : what was estimated.
    items : (d,) the items that have a score: the graph's component, none where it is a single item.
    plug_in : (d,) mean of F, without a valid interval.
    estimate : mean of psi with its clustered covariance.
    rows_used : rows that F was averaged over; fewer than there are on a sample that was thinned.
    """

    target: Target
    items: Ints
    plug_in: Floats
    estimate: Estimate
    rows_used: int

    @property
    def correction(self) -> Floats:
        """(d,) what debiasing added to the plug-in."""
        return self.estimate.value - self.plug_in


class Evaluated(Protocol):
    """A block's share in psi: the votes' corrections (v,), and the pieces that they and the rows load on."""

    @property
    def block(self) -> Block:
        """Its place in the layout."""

    @property
    def correction(self) -> Floats:
        """(v,) factor of each vote of the block on its request's gradient."""

    def pieces(self, target: Target) -> tuple[Floats, Floats]:
        """Values (c, K) of the cells and gradients (R, K) of the requests."""


class Keepable(Evaluated, Protocol):
    """A block whose values can be had alone, and whose pieces can be kept."""

    def value(self, target: Target) -> Floats:
        """Values (c, K)."""

    def kept(self, target: Target) -> Kept:
        """The same for one target, with what its pieces take alone."""


@dataclass(frozen=True)
class Kept:
    """A block's share in psi of one target; see `Evaluated`.

    Parameters
    ----------
    block, correction : as they were.
    shown : places of the cells with a value, None where all have one.
    values : (shown, K) theirs.
    gradient : (R, K) at the requests, or a function that makes it of what takes less room.
    """

    block: Block
    correction: Floats
    shown: Ints | None
    values: Floats
    gradient: Callable[[], Floats]

    def pieces(self, target: Target) -> tuple[Floats, Floats]:
        """Of the one target."""
        return self.value(target), self.gradient()

    def value(self, _target: Target) -> Floats:
        """Values (c, K), 0 where none was asked for."""
        return self.values if self.shown is None else spread(self.values, self.shown, self.block)

    def kept(self, _target: Target) -> Kept:
        """Itself."""
        return self


def spread(values: Floats, shown: Ints, block: Block) -> Floats:
    """(c, K) from the values of some of a block's cells, 0 for the others."""
    whole = np.zeros((block.cells.stop - block.cells.start, values.shape[1]))
    whole[shown] = values
    return whole


def summed(
    sample: Sample,
    layout: Layout,
    evaluated: Iterable[Evaluated],
    *,
    targets: Mapping[Key, Target],
    clustering: Clustering,
    thinning: Thinning | None = None,
) -> dict[Key, OneStep]:
    """Mean and clustered covariance of psi, from its pieces block by block in the layout's order.

    Of a thinned sample psi is stretched: only the values of the cells with a row drawn count.
    """
    row_shard = layout.shard_of_rows()
    clusters = [ClusterMap(term, row_shard, sample.votes.row) for term in clustering.terms(sample)]
    shifts = 1 if thinning is None else 2
    running = {key: _Running(target, clusters, shifts) for key, target in targets.items()}
    for _, shard in groupby(evaluated, key=lambda scored: scored.block.shard):
        blocks: list[Block] = []
        corrections: list[Floats] = []
        for scored in shard:
            blocks.append(scored.block)
            corrections.append(scored.correction)
            mass = _masses(layout, scored, thinning)
            for each in running.values():
                each.add(scored, mass)
        block, correction = joined(blocks), np.concatenate(corrections)
        for number, of_term in enumerate(clusters):
            loadings = of_term.loadings(layout, block, correction, thinning)
            for each in running.values():
                each.sums[number].add(loadings, each.pieces())
        for each in running.values():
            each.clear()
    return {key: each.close(sample.n_rows, thinning) for key, each in running.items()}


def ranked_items(graph: Graph) -> Ints:
    """The items that have a score; a lone item has none."""
    return graph.ranked if graph.ranked.size > 1 else graph.ranked[:0]


def _masses(layout: Layout, scored: Evaluated, thinning: Thinning | None) -> tuple[Floats, Floats]:
    """Rows of each cell (c,), stretched where thinned, and summed corrections of each request (R,) of a block."""
    block = scored.block
    at = layout.request[block.votes] - block.requests.start
    corrections = sums_by(at, scored.correction, block.requests.stop - block.requests.start)
    if thinning is None:
        return layout.rows[block.cells].astype(np.float64), corrections
    cell = layout.row_cell[block.rows] - block.cells.start
    return sums_by(cell, thinning.stretch(block.rows), block.cells.stop - block.cells.start), corrections


class _Running:
    """A target's sums, around an origin close to its value, and the pieces of the shard at hand."""

    def __init__(self, target: Target, clusters: list[ClusterMap], shifts: int) -> None:
        size = target.graph.n_items
        self.sums = [ClusterSums(each, size, shifts=shifts) for each in clusters]
        self._target = target
        self._origin: Floats | None = None
        self._value, self._correction = np.zeros(size), np.zeros(size)
        self._values: list[Floats] = []
        self._gradients: list[Floats] = []

    def add(self, scored: Evaluated, mass: tuple[Floats, Floats]) -> None:
        value, gradient = scored.pieces(self._target)
        if self._origin is None:
            self._origin = value.mean(axis=0)
        self._values.append(value - self._origin)
        self._gradients.append(gradient)
        self._value += mass[0] @ self._values[-1]
        self._correction += mass[1] @ gradient

    def pieces(self) -> Floats:
        """(c + R, K) of the shard."""
        return np.concatenate([*self._values, *self._gradients])

    def clear(self) -> None:
        self._values, self._gradients = [], []

    def close(self, n_rows: int, thinning: Thinning | None) -> OneStep:
        items = ranked_items(self._target.graph)
        origin = self._origin if self._origin is not None else np.zeros_like(self._value)
        shift = (self._value + self._correction) / n_rows
        shifts = [shift] if thinning is None else [self._value / n_rows, self._correction / n_rows]
        covariance = np.sum([each.total(np.stack(shifts)) for each in self.sums], axis=0) / n_rows**2
        covariance = _semidefinite((covariance + covariance.T) / 2, len(self.sums) > 1)
        estimate = Estimate((origin + shift)[items], covariance[np.ix_(items, items)], n_rows)
        plug_in, rows_used = (origin + self._value / n_rows)[items], thinning.rows_used if thinning else n_rows
        return OneStep(self._target, items, plug_in, estimate, rows_used)


def _semidefinite(covariance: Floats, signed: bool) -> Floats:
    """Raise negative eigenvalues, which a difference of clusterings can have in small samples, to 0."""
    if not signed:
        return covariance
    values, vectors = np.linalg.eigh(covariance)
    if values[0] >= -1e-12 * max(float(values[-1]), 0.0):
        return covariance
    repaired: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return repaired
