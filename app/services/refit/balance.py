"""Whether a board's propensities add up to its rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.services.refit.frame import Frame
from app.stats.debias.balance import Balance, check_balance, drawable_pairs
from app.stats.debias.propensity import eligible_rows
from app.stats.debias.support import ONE_SIDED_FROM, vote_counts
from app.stats.gars import components
from app.stats.types import Bools, Sample


def balance_of(frame: Frame, whole: Sample) -> Balance | None:
    """The check of a whole board; None without a vote, and where propensities are estimated.

    Estimated ones come from these very votes. They add up by construction over the pairs that were shown, and nothing
    says which of the others could have been.
    """
    if frame.kind != "logged" or not len(whole.votes):
        return None
    offers = eligible_rows(frame.exposure)
    drawable = drawable_pairs(whole, offers)
    return check_balance(whole, drawable if frame.designed else drawable & ~_kept_apart(whole))


def _kept_apart(sample: Sample) -> Bools:
    """(K, K) pairs across groups of items that no vote joins although chance would have joined them.

    As for single orders, that is said where at least 16 votes were to be expected: between two groups by how often
    their items were shown, of an item that was never shown by the mean over all items.
    """
    votes = vote_counts(sample.votes.left, sample.votes.right, sample.n_items)
    group = components(votes > 0)
    shown = np.bincount(group, weights=votes.sum(axis=0) + votes.sum(axis=1))
    shown[shown == 0] = 2 * len(sample.votes) / sample.n_items
    expected = np.outer(shown, shown) / max(shown.sum(), 1.0)
    apart: Bools = (group[:, None] != group) & (expected[group[:, None], group] >= ONE_SIDED_FROM)
    return apart


def described(balance: Balance, frame: Frame) -> dict[str, Any]:
    """The verdict and the worst group, in JSON's terms."""
    worst = int(np.abs(balance.z).argmax()) if balance.z.size else -1
    group = [frame.items[member] if member >= 0 else None for member in balance.members[worst]] if worst >= 0 else []
    return {
        "consistent": balance.consistent,
        "largest_z": balance.largest,
        "threshold": balance.threshold,
        "groups": int(balance.z.size),
        "worst": group,
    }
