"""The cross-fitted one-step estimator of ranking scores, for any estimand on any graph.

psi_i = F(mu(x_i)) + Σ_{j≠k} S_ijk / pi_jk(x_i) J_jk(mu(x_i)) (Y_ijk - mu_jk(x_i)), theta^ = mean psi (DMLRank,
arXiv 2601.21816, Section 4). J_jk = dF/dp_jk q_jk with q_jk = dp_jk/dmu_jk, and <q_jk, mu_jk> = 0 whatever the weights,
so a vote's correction is the scalar weight/pi q_jkY times dF/dp_jk.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol, TypeVar

import numpy as np

from app.stats.debias.clusters import Clustering, ClusterMap, ClusterSums
from app.stats.debias.layout import Block, Layout, joined
from app.stats.debias.weights import sums_by
from app.stats.errors import InvalidInput
from app.stats.gars import Estimand, Graph
from app.stats.types import Estimate, Floats, Ints, Sample, Votes

# The fold models' (u, K, K, C) probabilities at covariate patterns (u,): mu(fold, patterns).
CrossFit = Callable[[int, Ints], Floats]
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
    """

    target: Target
    items: Ints
    plug_in: Floats
    estimate: Estimate

    @property
    def correction(self) -> Floats:
        """(d,) what debiasing added to the plug-in."""
        return self.estimate.value - self.plug_in


@dataclass(frozen=True)
class Scored:
    """What a block's mu says, the same for every target.

    Parameters
    ----------
    block : its place in the layout.
    index, left, right : (R,) the requests' cells within the block, and their pairs.
    p : (c, K, K) scores.
    correction : (v,) weight/pi q_jkY of each of the block's votes.
    """

    block: Block
    index: Ints
    left: Ints
    right: Ints
    p: Floats
    correction: Floats

    def pieces(self, target: Target) -> tuple[Floats, Floats]:
        """F (c, K) of the cells and dF/dp (R, K) at the requests."""
        gradient = target.estimand.gradient_at(self.p, self.index, self.left, self.right, target.graph)
        return target.estimand.value(self.p, target.graph), gradient


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


def scored_blocks(sample: Sample, mu: CrossFit, layout: Layout) -> Iterator[Scored]:
    """Evaluate mu once per distinct (fold, pattern), a block at a time."""
    for block in layout.blocks():
        cells, requests = block.cells, block.requests
        probabilities = mu(int(layout.fold[cells.start]), layout.pattern[cells])
        index, left, right = layout.cell[requests] - cells.start, layout.left[requests], layout.right[requests]
        at_requests = sample.rule.gradient(probabilities[index, left, right])
        votes = sample.votes.take(block.votes)
        gain = at_requests[layout.request[block.votes] - requests.start, votes.outcome]
        yield Scored(
            block,
            index,
            left,
            right,
            sample.rule.scores(probabilities),
            votes.weight / votes.propensity * gain,
        )


def one_step(
    sample: Sample, mu: CrossFit, targets: Mapping[Key, Target], *, clustering: Clustering
) -> dict[Key, OneStep]:
    """Debiased scores of several targets in one pass over mu.

    Parameters
    ----------
    sample : rows, votes, folds.
    mu : the fold models; called once per distinct (fold, pattern), for blocks of patterns of one fold.
    targets : what to estimate.
    clustering : what the variance is clustered by.

    Raises
    ------
    InvalidInput
        Without rows, or with a propensity outside (0, 1].
    """
    layout = checked_layout(sample)
    return summed(sample, layout, scored_blocks(sample, mu, layout), targets=targets, clustering=clustering)


def summed(
    sample: Sample,
    layout: Layout,
    evaluated: Iterable[Evaluated],
    *,
    targets: Mapping[Key, Target],
    clustering: Clustering,
) -> dict[Key, OneStep]:
    """Mean and clustered covariance of psi, from its pieces block by block in the layout's order."""
    row_shard = layout.shard_of_rows()
    clusters = [ClusterMap(term, row_shard, sample.votes.row) for term in clustering.terms(sample)]
    running = {key: _Running(target, clusters) for key, target in targets.items()}
    for _, shard in groupby(evaluated, key=lambda scored: scored.block.shard):
        blocks: list[Block] = []
        corrections: list[Floats] = []
        for scored in shard:
            blocks.append(scored.block)
            corrections.append(scored.correction)
            mass = _masses(layout, scored)
            for each in running.values():
                each.add(scored, mass)
        block, correction = joined(blocks), np.concatenate(corrections)
        for number, of_term in enumerate(clusters):
            loadings = of_term.loadings(layout, block, correction)
            for each in running.values():
                each.sums[number].add(loadings, each.pieces())
        for each in running.values():
            each.clear()
    return {key: each.close(sample.n_rows) for key, each in running.items()}


def effective_votes(votes: Votes, n_items: int) -> Floats:
    """(Σw)²/Σw² of each item's votes, w = weight / propensity: (K,), 0 without votes."""
    weight = np.concatenate([votes.weight / votes.propensity] * 2)
    item = np.concatenate([votes.left, votes.right])
    total = sums_by(item, weight, n_items)
    square = sums_by(item, weight**2, n_items)
    return np.divide(total**2, square, out=np.zeros(n_items), where=square > 0)


def checked_layout(sample: Sample) -> Layout:
    """The layout of a sample that has rows and valid propensities."""
    pi = sample.votes.propensity
    if sample.n_rows < 1:
        raise InvalidInput("a sample without rows")
    if not ((pi > 0) & (pi <= 1)).all():
        raise InvalidInput("propensities outside (0, 1]")
    return Layout.of(sample)


def ranked_items(graph: Graph) -> Ints:
    """The items that have a score; a lone item has none."""
    return graph.ranked if graph.ranked.size > 1 else graph.ranked[:0]


def _masses(layout: Layout, scored: Evaluated) -> tuple[Floats, Floats]:
    """Rows of each cell (c,) and summed corrections of each request (R,) of a block."""
    block = scored.block
    at = layout.request[block.votes] - block.requests.start
    corrections = sums_by(at, scored.correction, block.requests.stop - block.requests.start)
    return layout.rows[block.cells].astype(np.float64), corrections


class _Running:
    """A target's sums, around an origin close to its value, and the pieces of the shard at hand."""

    def __init__(self, target: Target, clusters: list[ClusterMap]) -> None:
        size = target.graph.n_items
        self.sums = [ClusterSums(each, size) for each in clusters]
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

    def close(self, n_rows: int) -> OneStep:
        items = ranked_items(self._target.graph)
        origin = self._origin if self._origin is not None else np.zeros_like(self._value)
        shift = (self._value + self._correction) / n_rows
        covariance = np.sum([each.total(shift) for each in self.sums], axis=0) / n_rows**2
        covariance = _semidefinite((covariance + covariance.T) / 2, len(self.sums) > 1)
        estimate = Estimate((origin + shift)[items], covariance[np.ix_(items, items)], n_rows)
        return OneStep(self._target, items, (origin + self._value / n_rows)[items], estimate)


def _semidefinite(covariance: Floats, signed: bool) -> Floats:
    """Raise negative eigenvalues, which a difference of clusterings can have in small samples, to 0."""
    if not signed:
        return covariance
    values, vectors = np.linalg.eigh(covariance)
    if values[0] >= -1e-12 * max(float(values[-1]), 0.0):
        return covariance
    repaired: Floats = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return repaired
