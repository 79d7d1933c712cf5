"""Propensities that depend on the covariates, learned from which pairs were shown where.

The labelled pairs are told from pairs that are drawn for the same offers by their frequencies alone. Where both are
mixed by their sizes, the odds of the two are pi_jk(x) over the frequency, and a classifier of them is a model of that
ratio. This needs a handful of pairs an offer instead of all K (K - 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from app.stats.debias.propensity import (
    FLOOR_SHARE,
    Exposure,
    Labels,
    Unit,
    eligible_rows,
    estimated_propensities,
    group_sizes,
)
from app.stats.types import Bools, Floats, Ints

BACKGROUND = 4
"""Pairs drawn by frequency for each labelled one."""
MOST_EVENTS = 200_000
"""Labelled pairs that a fold's model learns from; of more, a seeded draw."""
CELLS = 2**22
"""Ratios (patterns × K²) held at a time."""
FITTING_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Contrast:
    """Labelled pairs beside pairs drawn by frequency (arrays of length m; x over u distinct covariates).

    Parameters
    ----------
    x : (u, d) covariates, NaN where missing.
    pattern : each pair's covariates.
    left, right : the ordered pair.
    labelled : whether it was labelled there; else it was drawn.
    weight : 1 for a labelled pair; together the drawn ones weigh what the frequencies say of these offers.
    group : pairs of one group stay on one side of an inner split.
    n_items : K.
    """

    x: Floats
    pattern: Ints
    left: Ints
    right: Ints
    labelled: Bools
    weight: Floats
    group: Ints
    n_items: int


class SelectionModel(Protocol):
    """A fitted ratio of propensities to frequencies."""

    def log_ratios(self, x: Floats) -> Floats:
        """(u, K, K) log of pi_jk(x) over the pair's frequency; the diagonal carries no meaning."""


class SelectionLearner(Protocol):
    """Tells labelled pairs from drawn ones."""

    def fit(self, contrast: Contrast, *, seed: int) -> SelectionModel | None:
        """Fit; None where the covariates do not tell them apart better than the frequencies do."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Which pairs were labelled, and where.

    Parameters
    ----------
    labels : (e,) the labelled events.
    exposure : the rows, those without a label included.
    fold, pattern, context : (n,) each row's fold, covariates and context.
    x : (u, d) distinct covariates.
    n_folds : V.
    unit : what an offer is.
    """

    labels: Labels
    exposure: Exposure
    fold: Ints
    pattern: Ints
    context: Ints
    x: Floats
    n_folds: int
    unit: Unit


@dataclass(frozen=True, slots=True)
class Learned:
    """Propensities as learned.

    Parameters
    ----------
    pi : (e,) of each labelled event, in (0, 1], given that its row is eligible.
    frequency : (e,) what the frequencies alone say of it.
    helped : (V,) whether the fold's model beats the frequencies on rows held out from it; else these are used.
    """

    pi: Floats
    frequency: Floats
    helped: Bools


def learned_propensities(selection: Selection, learner: SelectionLearner, *, seed: int) -> Learned:
    """Propensities of the labelled events, each fold's from the rows of the other folds.

    On battle boards pi sums over the eligible ordered pairs of an offer to the share of offers with a labelled event;
    on context boards it is the chance that the pair is labelled in the offer. The floor is that of frequencies:
    .1 / (eligible ordered pairs).

    Parameters
    ----------
    selection : rows and labelled events.
    learner : of the ratios.
    seed : of the drawn pairs and of what is held out.
    """
    tables = estimated_propensities(
        selection.labels, selection.exposure, fold=selection.fold, n_folds=selection.n_folds, unit=selection.unit
    )
    labels = selection.labels
    fold = selection.fold[labels.row]
    frequency: Floats = tables[fold, labels.left, labels.right]
    pi, helped = frequency.copy(), np.zeros(selection.n_folds, dtype=np.bool_)
    for number in np.unique(fold).tolist():
        base = _base(selection, tables[number], selection.fold != number)
        model = learner.fit(_contrast(selection, base, number, seed=seed), seed=seed)
        if model is not None:
            helped[number] = True
            own = np.flatnonzero(fold == number)
            pi[own] = _values(selection, base, model, own)
    floor = FLOOR_SHARE / max(int((eligible_rows(selection.exposure) > 0).sum()), 1)
    used = np.where(helped[fold] & (pi > 0), np.clip(pi, floor, 1.0), frequency)
    return Learned(used, frequency, helped)


def _base(selection: Selection, table: Floats, rows: Bools) -> Floats:
    """(g, K, K) frequencies within each active set.

    On context boards these are the table's. On battle boards pairs compete: weights w are sought such that
    w_jk / Σ_eligible w, summed over the offers that are eligible for the pair, gives its count.
    """
    active = selection.exposure.active
    eligible = active[:, :, None] & active[:, None, :] & ~np.eye(active.shape[1], dtype=np.bool_)
    if selection.unit == "context" or not rows.any():
        return np.where(eligible, table, 0.0)
    offers = group_sizes(selection.exposure.take(rows))
    counts = table * np.einsum("g,gjk->jk", offers, eligible)
    if not counts.any():
        return np.where(eligible, table, 0.0)
    drawn = counts.sum() / offers.sum()
    weight = table.copy()
    for _ in range(FITTING_ROUNDS if offers.size > 1 else 1):
        total = np.einsum("gjk,jk->g", eligible, weight)
        reach = np.einsum("g,gjk->jk", np.divide(offers, total, out=np.zeros_like(total), where=total > 0), eligible)
        weight = np.divide(counts / drawn, reach, out=np.zeros_like(counts), where=reach > 0)
    each = np.where(eligible, weight, 0.0)
    total = each.sum(axis=(1, 2), keepdims=True)
    shares: Floats = drawn * np.divide(each, total, out=np.zeros_like(each), where=total > 0)
    return shares


def _contrast(selection: Selection, base: Floats, fold: int, *, seed: int) -> Contrast:
    """Labelled events of the other folds, and pairs drawn for their offers; of all rows where the others have none."""
    rows = selection.fold != fold
    if not rows[selection.labels.row].any():
        rows = np.ones_like(rows)
    generator = np.random.default_rng([seed, fold])
    events = np.flatnonzero(rows[selection.labels.row])
    share = min(MOST_EVENTS / events.size, 1.0)
    chosen = np.sort(generator.permutation(events)[: int(np.ceil(share * events.size))])
    row, left, right, mass = _drawn(selection, base, rows, BACKGROUND * chosen.size, generator)
    every = np.concatenate([selection.labels.row[chosen], row])
    labelled = np.arange(every.size) < chosen.size
    return Contrast(
        x=selection.x,
        pattern=selection.pattern[every],
        left=np.concatenate([selection.labels.left[chosen], left]),
        right=np.concatenate([selection.labels.right[chosen], right]),
        labelled=labelled,
        weight=np.where(labelled, 1.0, share * mass / max(row.size, 1)),
        group=selection.context[every],
        n_items=base.shape[1],
    )


def _drawn(
    selection: Selection, base: Floats, rows: Bools, size: int, generator: np.random.Generator
) -> tuple[Ints, Ints, Ints, float]:
    """About `size` (row, left, right) by `base`, offers taken in turn, and the labels expected of all these offers."""
    exposure, n_items = selection.exposure, base.shape[1]
    offers = np.flatnonzero(rows[exposure.row])
    expected = base.sum(axis=(1, 2))[exposure.group[offers]]
    mass = float(expected.sum())
    # Evenly spaced along the offers, each as long as the labels expected of it.
    spots = (np.arange(size) + generator.random()) / max(size, 1) * mass
    offer = offers[np.minimum(np.searchsorted(np.cumsum(expected), spots, side="right"), max(offers.size - 1, 0))]
    group, pair = exposure.group[offer], np.zeros(size, dtype=np.int64)
    for number in np.unique(group).tolist():
        at = generator.permutation(np.flatnonzero(group == number))
        ladder = np.cumsum(base[number].ravel())
        heights = (np.arange(at.size) + generator.random(at.size)) / at.size * ladder[-1]
        pair[at] = np.minimum(np.searchsorted(ladder, heights, side="right"), ladder.size - 1)
    return exposure.row[offer], pair // n_items, pair % n_items, mass


def _values(selection: Selection, base: Floats, model: SelectionModel, events: Ints) -> Floats:
    """Propensities of some events by their fold's model; 0 where the event's offer was not eligible for the pair."""
    row, pair = selection.labels.row[events], (selection.labels.left[events], selection.labels.right[events])
    used, at = np.unique(selection.pattern[row], return_inverse=True)
    group = np.zeros(selection.exposure.n_rows, dtype=np.int64)
    group[selection.exposure.row] = selection.exposure.group
    values = np.zeros(events.size)
    width = max(CELLS // base.shape[1] ** 2, 1)
    for start in range(0, used.size, width):
        ratios = np.exp(model.log_ratios(selection.x[used[start : start + width]]))
        here = np.flatnonzero((at >= start) & (at < start + width))
        cell, active = at[here] - start, group[row[here]]
        frequency = base[active, pair[0][here], pair[1][here]]
        values[here] = frequency * ratios[cell, pair[0][here], pair[1][here]]
        if selection.unit == "battle":
            values[here] /= _excess(ratios, base)[cell, active]
    return values


def _excess(ratios: Floats, base: Floats) -> Floats:
    """(c, g) Σ base × ratio over the eligible pairs, relative to Σ base."""
    flat = base.reshape(len(base), -1)
    total = ratios.reshape(len(ratios), -1) @ flat.T
    excess: Floats = np.divide(total, flat.sum(axis=1), out=np.ones_like(total), where=total > 0)
    return excess
