"""What the votes' design allows: balance, overlap and support, in JSON's terms."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.services.refit.frame import Frame
from app.stats.debias.balance import Balance
from app.stats.debias.propensity import FLOOR_SHARE, eligibility_share
from app.stats.debias.support import vote_counts
from app.stats.diagnostics import Overlap, heaviest, overlap_of_items, overlap_of_pairs, weights_of
from app.stats.gars import components
from app.stats.types import Bools, Sample

MOST_GROUPS = 200
MOST_PAIRS = 1000
HEAVIEST = 10
"""How many groups, pairs and votes are listed at most."""

Section = dict[str, Any]


def balance_section(balance: Balance | None, frame: Frame, sample: Sample) -> Section:
    """z of each group of ordered pairs, the most conspicuous first."""
    if balance is None:
        status = "no_votes" if not len(sample.votes) else "estimated"
        return {"status": status, "threshold": None, "largest_z": None, "groups": 0, "listed": []}
    order = np.argsort(-np.abs(balance.z), kind="stable")[:MOST_GROUPS]
    names = (*frame.items, None)
    listed = [
        {
            "left": names[balance.members[at, 0]],
            "right": names[balance.members[at, 1]],
            "ordered_pairs": int(balance.pairs[at]),
            "z": float(balance.z[at]),
        }
        for at in order.tolist()
    ]
    return {
        "status": "ok" if balance.consistent else "propensities_inconsistent",
        "threshold": balance.threshold,
        "largest_z": balance.largest,
        "groups": int(balance.z.size),
        "listed": listed,
    }


def overlap_section(frame: Frame, sample: Sample) -> Section:
    """Effective votes, propensities and weights of items and pairs; the pairs worth fewest votes first."""
    if not len(sample.votes):
        return {"status": "no_votes", "items": [], "pairs": [], "heaviest": [], "at_floor": None}
    upper = np.triu_indices(sample.n_items, 1)
    pairs = overlap_of_pairs(sample)
    seen = np.flatnonzero(pairs.votes)
    chosen = seen[np.argsort(pairs.effective[seen], kind="stable")][:MOST_PAIRS]
    return {
        "status": "ok",
        "items": [
            {"item": name, **_numbers(overlap, at)}
            for overlap in [overlap_of_items(sample)]
            for at, name in enumerate(frame.items)
        ],
        "pairs": [
            {"first": frame.items[upper[0][at]], "second": frame.items[upper[1][at]], **_numbers(pairs, at)}
            for at in chosen.tolist()
        ],
        "heaviest": _heaviest(frame, sample),
        "at_floor": _at_floor(frame, sample),
    }


def support_section(frame: Frame, sample: Sample) -> Section:
    """Pairs with votes, and the groups of items that chains of votes link."""
    votes = vote_counts(sample.votes.left, sample.votes.right, sample.n_items)
    groups = components(votes > 0)
    size = np.bincount(groups, minlength=1)
    linked = [[frame.items[at] for at in np.flatnonzero(groups == label)] for label in np.argsort(-size, kind="stable")]
    pairs, supported = sample.n_items * (sample.n_items - 1) // 2, _pairs(votes > 0) if votes.size else 0
    status = "no_votes" if not len(sample.votes) else "disconnected" if len(linked) > 1 else "sparse"
    return {
        "status": "ok" if status == "sparse" and supported == pairs else status,
        "pairs": pairs,
        "supported": supported,
        "both_orders": int(((votes > 0) & (votes.T > 0)).sum()) // 2,
        "components": linked if frame.items else [],
    }


def _numbers(overlap: Overlap, at: int) -> Section:
    seen = bool(overlap.votes[at])
    return {
        "votes": int(overlap.votes[at]),
        "effective_votes": float(overlap.effective[at]),
        "smallest_propensity": float(overlap.smallest_propensity[at]) if seen else None,
        "largest_weight": float(overlap.largest_weight[at]) if seen else None,
    }


def _heaviest(frame: Frame, sample: Sample) -> list[Section]:
    """The votes with the largest weights, by their numbers in the database."""
    votes, weight = sample.votes, weights_of(sample.votes)
    total = float(weight.sum())
    return [
        {
            "vote": int(frame.vote_id[at]),
            "left": frame.items[votes.left[at]],
            "right": frame.items[votes.right[at]],
            "propensity": float(votes.propensity[at]),
            "weight": float(weight[at]),
            "share": float(weight[at]) / total,
        }
        for at in heaviest(votes, HEAVIEST).tolist()
    ]


def _at_floor(frame: Frame, sample: Sample) -> Section | None:
    """Share of the votes, and of their weights, whose estimated propensity is the least that one can be."""
    if frame.kind == "logged":
        return None
    share = eligibility_share(frame.exposure)
    floor = FLOOR_SHARE / max(int((share > 0).sum()), 1)
    votes, weight = sample.votes, weights_of(sample.votes)
    eligible = np.maximum(share[votes.left, votes.right], 0.0)
    low = votes.propensity <= floor * np.where(eligible > 0, eligible, 1.0) * (1.0 + 1e-9)
    return {"votes": float(low.mean()), "weight": float(weight[low].sum() / weight.sum())}


def _pairs(present: Bools) -> int:
    return int(np.triu(present | present.T, 1).sum())
