"""Where the nuisances of a sample are needed: distinct (fold, pattern) cells and the pairs voted on in them.

mu depends on a row only through its fold and its covariates, so everything drawn from it is computed once a cell, in
blocks of cells that bound the memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.stats.types import Bools, Ints, Sample

# Numbers held at once: mu (u, K, K, C) of a block's cells and the gradients (m, K) at its pairs.
BLOCK = 1_000_000
# Values and gradients (c + R, K) that a target keeps before they are summed over clusters.
SHARD = 6_000_000


@dataclass(frozen=True, slots=True)
class Layout:
    """Distinct cells c and requests R (ordered pairs voted on in a cell), both sorted.

    Parameters
    ----------
    fold, pattern, rows : (c,) of each cell; `rows` is how many rows it has.
    row_cell : (n,) each row's cell.
    cell, left, right : (R,) of each request.
    request : (m,) each vote's request.
    bounds : (b + 1,) cells where the blocks begin; a block has cells of one fold.
    shard : (b,) runs of blocks whose clusters are summed together.
    """

    fold: Ints
    pattern: Ints
    rows: Ints
    row_cell: Ints
    cell: Ints
    left: Ints
    right: Ints
    request: Ints
    bounds: Ints
    shard: Ints

    @classmethod
    def of(cls, sample: Sample, *, block: int = BLOCK, shard: int = SHARD, valued: Bools | None = None) -> Layout:
        """Lay out a sample; F is asked for at the `valued` rows (n,) or at all."""
        size, votes = sample.n_items, sample.votes
        stride = int(sample.pattern.max(initial=0)) + 1
        keys, row_cell, rows = np.unique(sample.fold * stride + sample.pattern, return_inverse=True, return_counts=True)
        asked = (row_cell[votes.row] * size + votes.left) * size + votes.right
        requests, request = np.unique(asked, return_inverse=True)
        cell, pair = np.divmod(requests, size * size)
        asked_of_cell = np.bincount(cell, minlength=keys.size)
        whole = (
            np.ones_like(rows) if valued is None else np.minimum(np.bincount(row_cell[valued], minlength=rows.size), 1)
        )
        cost = whole * size * size * (sample.rule.n_categories + 4) + size * asked_of_cell
        bounds = _bounds(keys // stride, cost, block)
        held = np.add.reduceat(size * (1 + asked_of_cell), bounds[:-1])
        shards = _bounds(np.zeros_like(held), held, shard)
        return cls(
            keys // stride,
            keys % stride,
            rows,
            row_cell,
            cell,
            pair // size,
            pair % size,
            request,
            bounds,
            np.repeat(np.arange(shards.size - 1), np.diff(shards)),
        )

    def blocks(self) -> Iterator[Block]:
        """The blocks, with their rows and votes in ascending order."""
        row_block = np.searchsorted(self.bounds, self.row_cell, side="right") - 1
        vote_block = np.searchsorted(self.bounds, self.cell[self.request], side="right") - 1
        number = np.arange(self.bounds.size - 1)
        row_order, row_ends = np.argsort(row_block, kind="stable"), np.searchsorted(np.sort(row_block), number, "right")
        vote_order = np.argsort(vote_block, kind="stable")
        vote_ends = np.searchsorted(np.sort(vote_block), number, "right")
        requests = np.searchsorted(self.cell, self.bounds)
        row_parts, vote_parts = np.split(row_order, row_ends)[:-1], np.split(vote_order, vote_ends)[:-1]
        for at, (rows, votes) in enumerate(zip(row_parts, vote_parts, strict=True)):
            cells = slice(int(self.bounds[at]), int(self.bounds[at + 1]))
            asked = slice(int(requests[at]), int(requests[at + 1]))
            yield Block(int(self.shard[at]), cells, asked, rows, votes)

    def shard_of_rows(self) -> Ints:
        """(n,) the shard of each row."""
        return self.shard[np.searchsorted(self.bounds, self.row_cell, side="right") - 1]


@dataclass(frozen=True, slots=True)
class Block:
    """A run of cells with their requests, rows and votes.

    Parameters
    ----------
    shard : the shard it belongs to.
    cells, requests : slices of the layout's cells and requests.
    rows, votes : indices of the sample's rows and votes in the block, ascending.
    """

    shard: int
    cells: slice
    requests: slice
    rows: Ints
    votes: Ints


def joined(blocks: Sequence[Block]) -> Block:
    """Consecutive blocks of one shard as one; rows and votes keep the blocks' order."""
    return Block(
        blocks[0].shard,
        slice(blocks[0].cells.start, blocks[-1].cells.stop),
        slice(blocks[0].requests.start, blocks[-1].requests.stop),
        np.concatenate([each.rows for each in blocks]),
        np.concatenate([each.votes for each in blocks]),
    )


def _bounds(fold: Ints, cost: Ints, block: int) -> Ints:
    """Cut where the fold changes and where the cost since the last cut would exceed `block`."""
    bounds, spent = [0], 0
    for at, (number, price) in enumerate(zip(fold.tolist(), cost.tolist(), strict=True)):
        if at and (number != fold[bounds[-1]] or spent + price > block):
            bounds.append(at)
            spent = 0
        spent += price
    return np.array([*bounds, fold.size], dtype=np.int64)
