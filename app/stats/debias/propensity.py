"""The chance that an ordered pair is labelled: logged or estimated, and what of it the estimator may use.

A context is eligible for a pair when both items were active as it was offered. The estimator divides by
pi × (share of rows eligible), so that rows from before an item's arrival need no label of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.stats.debias.support import vote_counts
from app.stats.debias.weights import sums_by
from app.stats.types import Bools, Floats, Ints

Unit = Literal["battle", "context"]

FLOOR_SHARE = 0.1
FITTING_ROUNDS = 100
# Votes of the pooled kept rate that a pair's own rate is shrunk by.
KEPT_PRIOR = 1.0


@dataclass(frozen=True, slots=True)
class Exposure:
    """When each offer could have shown what (o offers of n rows).

    Parameters
    ----------
    row : (o,) the row of each offer; every row has at least one.
    group : (o,) which active set was in force as it was made.
    active : (g, K) the items of each active set.
    n_rows : n.
    """

    row: Ints
    group: Ints
    active: Bools
    n_rows: int

    @classmethod
    def always(cls, n_rows: int, n_items: int) -> Exposure:
        """All items active throughout, one offer a row."""
        return cls.of_rows(np.zeros(n_rows, dtype=np.int64), np.ones((1, n_items), dtype=np.bool_))

    @classmethod
    def of_rows(cls, group: Ints, active: Bools) -> Exposure:
        """One offer a row, in row order."""
        return cls(np.arange(group.size), group, active, int(group.size))

    def take(self, rows: Bools) -> Exposure:
        """The rows of a mask (n,), renumbered, with their offers."""
        kept, number = rows[self.row], np.cumsum(rows) - 1
        return Exposure(number[self.row[kept]], self.group[kept], self.active, int(rows.sum()))


@dataclass(frozen=True, slots=True)
class Labels:
    """Distinct labelled (offer, ordered pair) events (all arrays of length e).

    Parameters
    ----------
    row : the estimator's row.
    left, right : the ordered pair.
    """

    row: Ints
    left: Ints
    right: Ints


def eligible_rows(exposure: Exposure) -> Floats:
    """(K, K) rows that could show both items, 0 on the diagonal; a row counts by the share of its offers that could."""
    return _eligible(exposure, 1.0 / np.bincount(exposure.row, minlength=exposure.n_rows)[exposure.row])


def eligibility_share(exposure: Exposure) -> Floats:
    """(K, K) share of the rows that are eligible for each pair; within a segment, pass the segment's rows."""
    return eligible_rows(exposure) / max(exposure.n_rows, 1)


def used_propensities(pi: Floats, share: Floats, *, left: Ints, right: Ints) -> Floats:
    """pi × (share of rows eligible) of each vote.

    Parameters
    ----------
    pi : (m,) logged or estimated, given that the row is eligible.
    share : (K, K) from `eligibility_share`.
    left, right : (m,) the ordered pairs.
    """
    used: Floats = pi * share[left, right]
    return used


def estimated_propensities(labels: Labels, exposure: Exposure, *, fold: Ints, n_folds: int, unit: Unit) -> Floats:
    """Frequencies of ordered pairs among eligible offers, each fold's from the rows of the other folds.

    A frequency N/E is shrunk to the one that the items' exposure on either side predicts, the more the less the pairs
    scatter around that prediction beyond chance. On battle boards pi × (eligible offers) sums to the labelled events,
    before the floor of .1 / (eligible ordered pairs): to all offers, less those that showed an item of no concern here
    or nothing at all. On context boards pi is the chance that the pair is labelled in the offer.

    Parameters
    ----------
    labels : the labelled events.
    exposure : the rows, those without a label included.
    fold : (n,) each row's fold.
    n_folds : V.
    unit : what an offer is.

    Returns
    -------
    (V, K, K) in (0, 1]; 0 for pairs never eligible. A fold without other rows uses its own.
    """
    tables = []
    n_items = exposure.active.shape[1]
    # A label proves that its offer was eligible, whatever the active sets say.
    proven = vote_counts(labels.left, labels.right, n_items).astype(np.float64)
    for number in range(n_folds):
        rows = fold != number
        events = rows[labels.row]
        if not events.any():
            rows, events = np.ones_like(rows), np.ones_like(events)
        others = exposure.take(rows)
        offers = _eligible(others, np.ones(others.row.size))
        offers = np.where(offers > 0, offers, proven)
        counts = vote_counts(labels.left[events], labels.right[events], n_items).astype(np.float64)
        tables.append(_frequencies(counts, offers, unit=unit))
    return np.stack(tables)


def exposure_counts(counts: Floats, offers: Floats) -> Floats:
    """Counts expected of each ordered pair from how often its items were shown on either side.

    The table a_j b_k (eligible offers)_jk with the margins of `counts`, by iterative proportional fitting.

    Parameters
    ----------
    counts, offers : (K, K) labelled events and eligible offers of each ordered pair, diagonals 0.
    """
    expected = np.where(offers > 0, offers, 0.0)
    for _ in range(FITTING_ROUNDS):
        for axis in (1, 0):
            now, wanted = expected.sum(axis=axis, keepdims=True), counts.sum(axis=axis, keepdims=True)
            expected = expected * np.divide(wanted, now, out=np.zeros_like(now), where=now > 0)
    return expected


def _frequencies(counts: Floats, offers: Floats, *, unit: Unit) -> Floats:
    """Shrunk, on battle boards scaled to the events that there are, and floored."""
    expected = exposure_counts(counts, offers)
    prior = _prior_counts(counts, expected)
    # The larger of both counts decides: a pair seen often is believed although it was expected seldom.
    evidence = np.maximum(counts, expected)
    trust = np.divide(evidence, evidence + prior, out=np.zeros_like(evidence), where=evidence > 0)
    shrunk = trust * counts + (1.0 - trust) * expected
    eligible = offers > 0
    pi = np.divide(shrunk, offers, out=np.zeros_like(shrunk), where=eligible)
    drawn = float((pi * offers).sum())
    if unit == "battle" and drawn > 0:
        pi = pi * counts.sum() / drawn
    # After the scaling: room made for the floor would otherwise be taken from pairs that are seen.
    floor = FLOOR_SHARE / max(int(eligible.sum()), 1)
    return np.where(eligible, np.clip(pi, floor, 1.0), 0.0)


def _prior_counts(counts: Floats, expected: Floats) -> float:
    """1/τ² with τ² the squared coefficient of variation of the pairs' rates around `expected`, by moments."""
    excess = float(((counts - expected) ** 2 - expected).sum())
    return float((expected**2).sum()) / max(excess, 1e-9)


@dataclass(frozen=True, slots=True)
class KeptRates:
    """What exclusions left.

    Parameters
    ----------
    pair : (K, K) share of the ordered pair's labels that are kept, shrunk to the overall one.
    overall : share of all labels that are kept; on battle boards this is Σ pi_jk kept_jk.
    """

    pair: Floats
    overall: float

    @classmethod
    def of(cls, labels: Labels, kept: Bools, n_items: int) -> KeptRates:
        """Rates of labelled events (e,), counted before exclusions; a superseded vote is in neither count."""
        before = vote_counts(labels.left, labels.right, n_items)
        after = vote_counts(labels.left[kept], labels.right[kept], n_items)
        overall = float(kept.mean()) if kept.size else 1.0
        return cls((after + KEPT_PRIOR * overall) / (before + KEPT_PRIOR), overall)


def corrected_for_exclusions(pi: Floats, rates: KeptRates, *, left: Ints, right: Ints, unit: Unit) -> Floats:
    """Logged propensities of the kept votes once others are excluded.

    On battle boards an excluded vote takes its offer with it: pi kept_jk / Σ pi kept. On context boards it is
    non-response: pi kept_jk.

    Parameters
    ----------
    pi : (m,) logged propensities of the kept votes.
    rates : kept rates of the board.
    left, right : (m,) the ordered pairs.
    unit : what an offer is.

    Returns
    -------
    (m,) in (0, 1].
    """
    scale = rates.overall if unit == "battle" else 1.0
    return np.minimum(pi * rates.pair[left, right] / max(scale, 1e-12), 1.0)


def group_sizes(exposure: Exposure) -> Floats:
    """(g,) offers made under each active set."""
    return sums_by(exposure.group, np.ones(exposure.row.size), exposure.active.shape[0])


def _eligible(exposure: Exposure, weight: Floats) -> Floats:
    size = sums_by(exposure.group, weight, exposure.active.shape[0])
    active = exposure.active.astype(np.float64)
    eligible: Floats = (active * size[:, None]).T @ active
    np.fill_diagonal(eligible, 0.0)
    return eligible
