"""How much a vote counts within its row."""

from __future__ import annotations

import numpy as np

from app.stats.types import Floats, Ints


def vote_weights(offer: Ints, left: Ints, right: Ints, *, offers_of_row: Ints) -> Floats:
    """1 / (votes on this ordered pair in the offer) / (offers of the row).

    Votes on one ordered pair within one offer are averaged, and a row averages over its offers, those without a
    label included.

    Parameters
    ----------
    offer : (m,) label of each vote's offer.
    left, right : (m,) the ordered pair.
    offers_of_row : (m,) number of offers of the vote's row, at least 1.

    Returns
    -------
    (m,) in (0, 1]; over the votes of one offer and pair they sum to 1 / offers_of_row.
    """
    _, at, count = np.unique(_events(offer, left, right), return_inverse=True, return_counts=True)
    weights: Floats = 1.0 / (count[at] * offers_of_row.astype(np.float64))
    return weights


def sums_by(label: Ints, weight: Floats, size: int) -> Floats:
    """Σ of the weights (m,) of each label 0 .. size - 1: (size,)."""
    return np.bincount(label, weights=weight, minlength=size).astype(np.float64, copy=False)


def first_of_event(offer: Ints, left: Ints, right: Ints) -> Ints:
    """Positions of the first vote on each distinct (offer, ordered pair): what a propensity counts once."""
    return np.unique(_events(offer, left, right), return_index=True)[1].astype(np.int64)


def _events(offer: Ints, left: Ints, right: Ints) -> Ints:
    size = int(max(left.max(initial=0), right.max(initial=0))) + 1
    _, compact = np.unique(offer, return_inverse=True)
    events: Ints = (compact.astype(np.int64) * size + left) * size + right
    return events
