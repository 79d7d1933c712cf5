"""Votes collapsed to weighted cells, and the places where each item appears."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.types import Bools, Floats, Ints, Training

_HELD_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class Cells:
    """Distinct (pattern, left, right, outcome) and the weight of the votes on each.

    Parameters
    ----------
    pattern, left, right, outcome : (m,) what the votes of a cell share.
    margins : (m, q) judges' margins of the cell's ordered pair, NaN where a judge is silent.
    kept, held : (m,) weight of the votes inside and outside the inner training part.
    """

    pattern: Ints
    left: Ints
    right: Ints
    outcome: Ints
    margins: Floats
    kept: Floats
    held: Floats

    def __len__(self) -> int:
        return int(self.pattern.size)

    @property
    def weight(self) -> Floats:
        """(m,) weight of all votes of the cell."""
        return self.kept + self.held

    def take(self, index: Ints | Bools) -> Cells:
        """The cells named by `index` (positions or a mask)."""
        return Cells(
            self.pattern[index],
            self.left[index],
            self.right[index],
            self.outcome[index],
            self.margins[index],
            self.kept[index],
            self.held[index],
        )


def collapse(training: Training, held: Bools) -> Cells:
    """Sum the votes of equal covariates, pair and outcome, in an order that `held` does not change.

    Parameters
    ----------
    training : the votes.
    held : (m,) votes outside the inner training part.
    """
    items, categories = training.n_items, training.rule.n_categories
    blind = training.x.x.shape[1] == 0 and training.x.margins is None
    pattern = np.zeros_like(training.pattern) if blind else training.pattern
    key = ((pattern * items + training.left) * items + training.right) * categories + training.outcome
    cell, index = np.unique(key, return_inverse=True)
    pair, outcome = np.divmod(cell, categories)
    left_of, right = np.divmod(pair, items)
    pattern, left = np.divmod(left_of, items)
    return Cells(
        pattern,
        left,
        right,
        outcome,
        training.x.judged(pattern, left, right),
        sums(index, training.weight * ~held, cell.size),
        sums(index, training.weight * held, cell.size),
    )


def dealt(group: Ints, parts: int, *, seed: int) -> Ints:
    """(m,) the part of each vote, 0 .. parts - 1: groups shuffled and dealt in turn."""
    labels, index = np.unique(group, return_inverse=True)
    part: Ints = (np.random.default_rng(seed).permutation(labels.size) % parts)[index]
    return part


def sums(place: Ints, values: Floats, size: int) -> Floats:
    """(size,) sums of the values by place."""
    return np.bincount(place, values, size).astype(np.float64, copy=False)


def shares(logits: Floats) -> tuple[Floats, Floats]:
    """(G, m) shares that go with logits (G, m), and (m,) the log of the sum of their powers of e.

    Powers of e of whole arrays at once take a third of the time of `numpy.logaddexp`.
    """
    top = logits.max(axis=0, initial=-np.inf)
    powers = np.exp(logits - top)
    total = powers.sum(axis=0)
    powers /= total
    return powers, top + np.log(total)


def held_out(group: Ints, *, seed: int) -> Bools:
    """(m,) the votes of a fifth of the groups, drawn."""
    labels, index = np.unique(group, return_inverse=True)
    held = np.zeros(labels.size, dtype=np.bool_)
    order = np.random.default_rng(seed).permutation(labels.size)
    held[order[: round(_HELD_SHARE * labels.size)]] = True
    return held[index]


@dataclass(frozen=True, slots=True)
class Appearances:
    """Each item with each covariate pattern under which it was judged: the rows of its utility.

    Parameters
    ----------
    pattern, item : (s,) ordered by item, then by pattern.
    bounds : (K + 1,) item j owns the rows bounds[j] .. bounds[j + 1].
    first, second : (m,) the row of each cell's left and right item.
    """

    pattern: Ints
    item: Ints
    bounds: Ints
    first: Ints
    second: Ints

    @classmethod
    def of(cls, cells: Cells, *, n_items: int) -> Appearances:
        """Where the items of the cells appear."""
        width = int(cells.pattern.max(initial=-1)) + 1
        both = np.concatenate([cells.left, cells.right]) * width + np.tile(cells.pattern, 2)
        key, place = np.unique(both, return_inverse=True)
        item, pattern = np.divmod(key, max(width, 1))
        bounds = np.searchsorted(item, np.arange(n_items + 1))
        return cls(pattern, item, bounds.astype(np.int64), place[: len(cells)], place[len(cells) :])

    def difference(self, utility: Floats) -> Floats:
        """(m,) left minus right utility of each cell."""
        return utility[self.first] - utility[self.second]

    def spread(self, slope: Floats) -> Floats:
        """(s,) the transpose of `difference`: what each row collects from its cells."""
        size = self.item.size
        return sums(self.first, slope, size) - sums(self.second, slope, size)

    def collect(self, curvature: Floats) -> Floats:
        """(s,) the sum over each row's cells, left or right."""
        size = self.item.size
        return sums(self.first, curvature, size) + sums(self.second, curvature, size)
