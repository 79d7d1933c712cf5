"""Pieces of pairwise estimands on a thinned sample: F where a row was drawn, gradients at every vote's own pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from app.stats.debias.layout import Block, Layout
from app.stats.debias.summing import Kept, Target, spread
from app.stats.debias.thinning import Thinning
from app.stats.errors import InvalidInput
from app.stats.gars import PairwiseEstimand
from app.stats.types import Floats, Ints, Sample

REQUESTS_AT_ONCE = 65_536


@runtime_checkable
class PairedCrossFit(Protocol):
    """Fold models that can be asked for single pairs; without that a sample is never thinned."""

    def __call__(self, fold: int, patterns: Ints, /) -> Floats:
        """(u, K, K, C) probabilities at patterns (u,)."""

    def at(self, fold: int, patterns: Ints, left: Ints, right: Ints) -> Floats:
        """(m, C) of one ordered pair per pattern (m,)."""


@dataclass(frozen=True)
class ScoredPairs:
    """What a block's mu says; see `Evaluated`.

    Parameters
    ----------
    block : its place in the layout.
    left, right : (R,) the requests' pairs.
    shown : places of the block's cells with a row drawn.
    p : (shown, K, K) their scores.
    pair : (R,) score of each request's pair.
    correction : (v,) weight/pi q_jkY of each of the block's votes.
    """

    block: Block
    left: Ints
    right: Ints
    shown: Ints
    p: Floats
    pair: Floats
    correction: Floats

    def pieces(self, target: Target) -> tuple[Floats, Floats]:
        """F (c, K) of the cells, 0 where none of their rows was drawn, and dF/dp (R, K) at the requests."""
        gradient = _pairwise(target).gradient_of_pairs(self.pair, self.left, self.right, target.graph)
        return self.value(target), gradient

    def value(self, target: Target) -> Floats:
        """F (c, K) of the cells."""
        return spread(self._shown(target), self.shown, self.block)

    def kept(self, target: Target) -> Kept:
        """F of the cells shown, and the requests' own scores."""
        pair, left, right, of_pairs = self.pair, self.left, self.right, _pairwise(target).gradient_of_pairs
        shown, graph = self._shown(target), target.graph
        return Kept(self.block, self.correction, self.shown, shown, lambda: of_pairs(pair, left, right, graph))

    def _shown(self, target: Target) -> Floats:
        if not self.shown.size:
            return np.zeros((0, target.graph.n_items))
        return target.estimand.value(self.p, target.graph)


def _pairwise(target: Target) -> PairwiseEstimand:
    if not isinstance(target.estimand, PairwiseEstimand):
        raise InvalidInput(f"the gradient of {target.estimand.name!r} needs the scores of all pairs")
    return target.estimand


def is_pairwise(target: Target) -> bool:
    """Whether a vote's correction needs the score of its own pair alone."""
    return isinstance(target.estimand, PairwiseEstimand)


def scored_pairs(sample: Sample, mu: PairedCrossFit, layout: Layout, thinning: Thinning) -> Iterator[ScoredPairs]:
    """Evaluate mu at all pairs of the cells with a row drawn, at each other request for its own pair."""
    probabilities = at_requests(mu, layout, sample.rule.n_categories)
    drawn = np.bincount(layout.row_cell[thinning.drawn], minlength=layout.rows.size)
    for block in layout.blocks():
        asked, votes = block.requests, sample.votes.take(block.votes)
        gain = sample.rule.gradient(probabilities[layout.request[block.votes]])
        shown = np.flatnonzero(drawn[block.cells])
        yield ScoredPairs(
            block,
            layout.left[asked],
            layout.right[asked],
            shown,
            _scores(sample, mu, layout, block.cells.start + shown),
            sample.rule.scores(probabilities[asked]),
            votes.weight / votes.propensity * gain[np.arange(block.votes.size), votes.outcome],
        )


def _scores(sample: Sample, mu: PairedCrossFit, layout: Layout, cells: Ints) -> Floats:
    """(c, K, K) scores of cells of one fold."""
    if not cells.size:
        return np.zeros((0, sample.n_items, sample.n_items))
    return sample.rule.scores(mu(int(layout.fold[cells[0]]), layout.pattern[cells]))


def at_requests(mu: PairedCrossFit, layout: Layout, n_categories: int) -> Floats:
    """(R, C) mu of each request's own pair."""
    found = np.zeros((layout.cell.size, n_categories))
    fold, pattern = layout.fold[layout.cell], layout.pattern[layout.cell]
    for number in np.unique(fold):
        start, stop = np.searchsorted(fold, [number, number + 1])
        for first in range(start, stop, REQUESTS_AT_ONCE):
            run = slice(first, min(first + REQUESTS_AT_ONCE, stop))
            found[run] = mu.at(int(number), pattern[run], layout.left[run], layout.right[run])
    return found
