"""Influence rows one by one: what an export shows and what a late vote replaces."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from scipy import sparse

from app.stats.debias.clusters import Clustering, Term
from app.stats.debias.layout import Layout
from app.stats.debias.one_step import (
    CrossFit,
    OneStep,
    Target,
    checked_layout,
    evaluated_blocks,
    ranked_items,
    thinning_of,
)
from app.stats.debias.paired import is_pairwise
from app.stats.debias.summing import Evaluated, Keepable, Kept
from app.stats.debias.thinning import Thinning
from app.stats.debias.weights import sums_by
from app.stats.types import Floats, Ints, Sample

Key = TypeVar("Key", bound=Hashable)

LINES_AT_ONCE = 8192
KEPT = 50_000_000
"""Numbers of a score's pieces (cells + requests, K) up to which they are kept for further passes."""


@dataclass(frozen=True)
class InfluenceRows:
    """Some rows of the estimator, rows without a label included.

    Of a thinned sample `value` is stretched around the mean of F for a pairwise estimand: the mean itself for rows that
    were not drawn. Of other estimands there are the rows drawn alone.

    Parameters
    ----------
    row : (b,) ascending within the chunk.
    value : (b, d) F(mu(x_i)) over the ranked items, stretched where thinned.
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
    return Influence.of(sample, mu, target).by_row()


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
    lines = Influence.of(sample, mu, result.target)
    scale = (lines.sample.n_rows + len(lines.sample.votes)) / lines.sample.n_rows
    centre = result.estimate.value
    for part in (part for scored in lines.evaluated() for part in lines.split(scored)):
        around = np.where((part.vote < 0)[:, None], centre, 0.0)
        yield InfluenceLines(part.row, part.vote, _labels(terms, part), centre + scale * (part.psi - around))


def influence_of(sample: Sample, mu: CrossFit, targets: Mapping[Key, Target]) -> dict[Key, Influence]:
    """The influence of several targets, ready for many passes after one or two over mu.

    What a target's pieces hold is kept, unless that is much; then its every pass asks mu again.
    """
    found = {key: Influence.of(sample, mu, target) for key, target in targets.items()}
    for alike in ({key: each for key, each in found.items() if each.stretched is way} for way in (True, False)):
        kept: dict[Key, list[Kept]] = {key: [] for key, each in alike.items() if each.is_small}
        if not kept:
            continue
        for scored in next(iter(alike.values())).evaluated():
            for key, pieces in kept.items():
                pieces.append(scored.kept(targets[key]))
        found |= {key: replace(found[key], kept=tuple(pieces)) for key, pieces in kept.items()}
    return found


@dataclass(frozen=True)
class Influence:
    """What the lines of a target are made from.

    Parameters
    ----------
    sample : the rows that have lines.
    mu, target : of the score.
    layout : of the sample.
    thinning : of a pairwise estimand.
    rows, votes : their numbers in the whole sample.
    whole : rows of the whole sample.
    kept : the blocks' pieces, None where they are not kept.
    """

    sample: Sample
    mu: CrossFit
    target: Target
    layout: Layout
    thinning: Thinning | None
    rows: Ints
    votes: Ints
    whole: int
    kept: tuple[Kept, ...] | None = None

    @classmethod
    def of(cls, sample: Sample, mu: CrossFit, target: Target) -> Influence:
        """Of a thinned sample, all rows for a pairwise estimand and else those drawn."""
        size, rows, votes = sample.n_rows, np.arange(sample.n_rows), np.arange(len(sample.votes))
        thinning = thinning_of(sample, mu)
        if thinning is None:
            return cls(sample, mu, target, checked_layout(sample), None, rows, votes, size)
        if is_pairwise(target):
            return cls(sample, mu, target, checked_layout(sample, thinning), thinning, rows, votes, size)
        part, votes = thinning.part(sample), votes[thinning.drawn[sample.votes.row]]
        return cls(part, mu, target, checked_layout(part), None, rows[thinning.drawn], votes, size)

    @property
    def stretched(self) -> bool:
        """Whether only some rows have a value of their own, stretched for all."""
        return self.thinning is not None

    @property
    def is_small(self) -> bool:
        """Whether its pieces may be kept."""
        cells = self.layout.rows.size if self.thinning is None else self.thinning.rows_used
        requests = 1 if is_pairwise(self.target) else self.sample.n_items
        return cells * self.sample.n_items + self.layout.cell.size * requests <= KEPT

    @property
    def rows_used(self) -> int:
        """Rows behind the values."""
        return self.sample.n_rows if self.thinning is None else self.thinning.rows_used

    @cached_property
    def centre(self) -> Floats:
        """(d,) mean of F where thinned, 0 elsewhere."""
        total = np.zeros(self.sample.n_items)
        if self.thinning is None:
            return total[self.items]
        for scored in self.evaluated():
            cells, rows = scored.block.cells, scored.block.rows
            own = self.layout.row_cell[rows] - cells.start
            total += sums_by(own, self.thinning.stretch(rows), cells.stop - cells.start) @ scored.value(self.target)
        return total[self.items] / self.sample.n_rows

    def by_row(self) -> Iterator[InfluenceRows]:
        """psi of every row, in chunks of cells."""
        for scored in self.evaluated():
            value, gradient = scored.pieces(self.target)
            rows, loadings = scored.block.rows, self.votes_of_rows(scored)
            for start in range(0, rows.size, LINES_AT_ONCE):
                chunk = slice(start, start + LINES_AT_ONCE)
                own = self.own(scored, value, rows[chunk])
                corrections = (loadings[chunk] @ gradient)[:, self.items]
                yield InfluenceRows(self.number(rows[chunk]), own, corrections)

    def by_part(self) -> Iterator[InfluenceLines]:
        """Values of rows, and corrections of votes, apart and not scaled: their sum over all is n times the score."""
        for scored in self.evaluated():
            yield from self.split(scored)

    @property
    def items(self) -> Ints:
        return ranked_items(self.target.graph)

    def evaluated(self) -> Iterator[Keepable]:
        """The blocks."""
        if self.kept is not None:
            return iter(self.kept)
        return evaluated_blocks(self.sample, self.mu, self.layout, self.thinning)

    def number(self, rows: Ints) -> Ints:
        """Numbers of the sample's rows in the whole one."""
        return self.rows[rows]

    def own(self, scored: Evaluated, value: Floats, rows: Ints) -> Floats:
        """(b, d) values of rows of a block, from those of its cells."""
        own: Floats = value[self.layout.row_cell[rows] - scored.block.cells.start][:, self.items]
        if self.thinning is None:
            return own
        stretched: Floats = self.centre + self.thinning.stretch(rows)[:, None] * (own - self.centre)
        return stretched

    def votes_of_rows(self, scored: Evaluated) -> sparse.csr_array:
        """(b, R) summed corrections of each row of a block at each request."""
        block = scored.block
        row = np.searchsorted(block.rows, self.sample.votes.row[block.votes])
        request = self.layout.request[block.votes] - block.requests.start
        shape = (block.rows.size, block.requests.stop - block.requests.start)
        return sparse.csr_array(sparse.coo_array((scored.correction, (row, request)), shape=shape))

    def split(self, scored: Evaluated) -> Iterator[InfluenceLines]:
        """Values and corrections of a block apart, not yet scaled."""
        value, gradient = scored.pieces(self.target)
        block, none = scored.block, np.zeros((0, 0), dtype=np.int64)
        for start in range(0, block.rows.size, LINES_AT_ONCE):
            rows = block.rows[start : start + LINES_AT_ONCE]
            yield InfluenceLines(self.number(rows), np.full(rows.size, -1), none, self.own(scored, value, rows))
        for start in range(0, block.votes.size, LINES_AT_ONCE):
            votes = block.votes[start : start + LINES_AT_ONCE]
            steps = gradient[self.layout.request[votes] - block.requests.start]
            parts = scored.correction[start : start + LINES_AT_ONCE, None] * steps
            row = self.number(self.sample.votes.row[votes])
            yield InfluenceLines(row, self.votes[votes], none, parts[:, self.items])


def _labels(terms: list[Term], lines: InfluenceLines) -> Ints:
    columns = [np.where(lines.vote < 0, term.row[lines.row], term.vote[lines.vote]) for term in terms]
    return np.stack(columns, axis=1)
