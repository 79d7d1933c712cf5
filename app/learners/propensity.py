"""LightGBM's ratio of propensities to frequencies: boosters on x, one per item and, where data allow, one per pair."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from lightgbm.basic import LightGBMError
from scipy.special import expit

from app.learners.trees import Forest, Ground, Nursery, Shape
from app.stats.debias.selection import Contrast
from app.stats.debias.weights import sums_by
from app.stats.types import Bools, Floats, Ints

SHAPE = Shape()
HELD_SHARE = 0.2
CERTAIN = 2.0
"""Standard errors by which trees must lower the held-out loss."""
LEAST_EVENTS = 100
"""Labels of an ordered pair from which it may have a booster of its own."""
MOST_PREDICTIONS = 4_000_000
"""Patterns × pairs up to which pairs have boosters of their own."""
STEEPEST = 8.0
"""Log-ratios beyond this are taken for it."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Seats:
    """Where the boosters' scores enter the pairs: a booster has one score for each pattern that it appears with.

    Parameters
    ----------
    seat : (b, m) positions among the scores end to end; past their end where no booster speaks.
    rows : per booster its patterns, ascending.
    """

    seat: Ints
    rows: tuple[Ints, ...]

    @classmethod
    def of(cls, booster: Ints, pattern: Ints, size: int) -> Seats:
        """`size` boosters; `booster` (b, m) names those of each pair of pattern (m,), -1 for none."""
        width = int(pattern.max(initial=0)) + 1
        key = np.where(booster < 0, size * width, booster * width + pattern)
        places, seat = np.unique(np.append(key, size * width), return_inverse=True)
        bounds = np.searchsorted(places, np.arange(size + 1) * width)
        rows = tuple(places[a:b] % width for a, b in pairwise(bounds))
        return cls(seat.ravel()[:-1].reshape(booster.shape), rows)

    def scores(self, values: Floats) -> Floats:
        """(m,) sum of each pair's scores."""
        total: Floats = np.append(values, 0.0)[self.seat].sum(axis=0)
        return total

    def collect(self, values: Floats) -> Floats:
        """(s,) sums over the pairs of each score."""
        size = sum(row.size for row in self.rows) + 1
        return sums_by(self.seat.ravel(), np.broadcast_to(values, self.seat.shape).ravel(), size)[:-1]


@dataclass(frozen=True, slots=True)
class ContrastObjective:
    """The logistic loss of telling labelled pairs from drawn ones.

    Parameters
    ----------
    seats : where scores enter.
    offset : (m,) log-odds without them.
    labelled : (m,) what is to be told.
    kept, held : (m,) weights inside and outside the inner training part.
    """

    seats: Seats
    offset: Floats
    labelled: Bools
    kept: Floats
    held: Floats

    def newton(self, scores: Floats) -> tuple[Floats, Floats]:
        """(s,) gradient and Hessian."""
        chance = expit(self.offset + self.seats.scores(scores))
        slope, curve = chance - self.labelled, chance * (1.0 - chance)
        return self.seats.collect(self.kept * slope), self.seats.collect(self.kept * curve)

    def held_loss(self, scores: Floats) -> float:
        """The loss of the pairs held out."""
        return float(self.held_losses(scores).sum())

    def held_losses(self, scores: Floats) -> Floats:
        """(m,) what each pair held out adds to it."""
        odds = self.offset + self.seats.scores(scores)
        losses: Floats = self.held * np.logaddexp(0.0, np.where(self.labelled, -odds, odds))
        return losses

    def helped_by(self, scores: Floats) -> bool:
        """Whether the held-out loss falls by more than chance makes of it."""
        gain = self.held_losses(np.zeros_like(scores)) - self.held_losses(scores)
        return bool(gain.sum() > CERTAIN * np.sqrt((gain**2).sum()))


@dataclass(frozen=True, slots=True)
class SelectionTrees:
    """log pi_jk(x) / frequency = f_j(x) + f_k(x) + g_jk(x).

    Parameters
    ----------
    items : f, one booster an item.
    pairs : g, one booster for each of `cells`.
    cells : (p,) ordered pairs j K + k.
    """

    items: Forest
    pairs: Forest
    cells: Ints

    def log_ratios(self, x: Floats) -> Floats:
        """(u, K, K); see `SelectionModel`."""
        pull = self.items.all_scores(x)
        ratios = pull[:, :, None] + pull[:, None, :]
        ratios.reshape(len(x), -1)[:, self.cells] += self.pairs.all_scores(x)
        return np.clip(ratios, -STEEPEST, STEEPEST)


@dataclass(frozen=True, slots=True)
class LightGBMSelection:
    """Tells labelled pairs from drawn ones by boosted trees on the covariates.

    One ensemble with the items among its columns would not get started: as long as x alone tells nothing, no first
    split pays. So an item's pull f_j is a booster on the pairs that hold the item, on either side; then every ordered
    pair with enough labels may have one of its own. Each stage has as many rounds as help on a fifth held out, and
    none where they help no more than chance would.

    Parameters
    ----------
    shape : of the trees.
    """

    shape: Shape = SHAPE

    def fit(self, contrast: Contrast, *, seed: int) -> SelectionTrees | None:
        """Fit; None where no tree lowers the loss, or where LightGBM gives up."""
        if not contrast.x.shape[1] or not contrast.labelled.any():
            return None
        try:
            return self._fit(contrast, seed)
        except LightGBMError as error:
            logger.warning("propensities could not be learned, frequencies stand in: %s", error)
            return None

    def _fit(self, contrast: Contrast, seed: int) -> SelectionTrees | None:
        bed = _Bed(contrast, Ground(contrast.x), _held(contrast.group, seed), self.shape, seed)
        sides = np.stack([contrast.left, contrast.right])
        items, odds = bed.grown(sides, contrast.n_items, np.zeros(contrast.left.size))
        cells = _busy_pairs(contrast)
        number = np.full(contrast.n_items**2, -1)
        number[cells] = np.arange(cells.size)
        own = number[contrast.left * contrast.n_items + contrast.right]
        pairs, _ = bed.grown(own[None], cells.size, odds)
        return SelectionTrees(items, pairs, cells) if any(items.texts) or any(pairs.texts) else None


@dataclass(frozen=True, slots=True)
class _Bed:
    """What both stages share."""

    contrast: Contrast
    ground: Ground
    held: Bools
    shape: Shape
    seed: int

    def grown(self, booster: Ints, size: int, odds: Floats) -> tuple[Forest, Floats]:
        """A stage's boosters on all pairs, for as many rounds as help, and the log-odds (m,) with them."""
        seats = Seats.of(booster, self.contrast.pattern, size)
        nursery, weight = Nursery(self.ground, seats.rows), self.contrast.weight
        inner = ContrastObjective(seats, odds, self.contrast.labelled, weight * ~self.held, weight * self.held)
        rounds = nursery.best_rounds(inner, self.shape, seed=self.seed) if size else 0
        shape = replace(self.shape, rounds=rounds)
        if not rounds or not inner.helped_by(nursery.grow(inner, shape, seed=self.seed)[1]):
            return Forest([""] * size), odds
        forest, scores = nursery.grow(replace(inner, kept=weight), shape, seed=self.seed)
        return forest, odds + seats.scores(scores)


def _held(group: Ints, seed: int) -> Bools:
    """(m,) pairs of a seeded fifth of the groups."""
    groups, at = np.unique(group, return_inverse=True)
    chosen: Bools = np.random.default_rng(seed).permutation(groups.size) < HELD_SHARE * groups.size
    return chosen[at]


def _busy_pairs(contrast: Contrast) -> Ints:
    """Ordered pairs with enough labels; none where scoring them everywhere would cost too much."""
    pair = contrast.left * contrast.n_items + contrast.right
    busy = np.flatnonzero(np.bincount(pair[contrast.labelled], minlength=contrast.n_items**2) >= LEAST_EVENTS)
    return busy if busy.size * len(contrast.x) <= MOST_PREDICTIONS else busy[:0]
