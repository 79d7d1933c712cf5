"""Which pairs carry a score: order weights, the ranked component, and how much rests on pairs without votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import gammainc

from app.stats.gars import Graph
from app.stats.types import Bools, Floats, Ints, Sample

Pairs = Literal["all", "observed"]
SupportStatus = Literal["ok", "extrapolated", "disconnected"]

# An order never seen while the opposite one was this often is taken for one that the policy never draws.
ONE_SIDED_FROM = 16
# Sides count as fixed where this share of the pairs seen twice or more was seen in one order only, and fair sides would
# do that with less than this chance.
FIXED_SHARE, FIXED_CHANCE = 0.9, 1e-6
MOST_UNSUPPORTED = 0.05


@dataclass(frozen=True)
class Support:
    """The pairs of a sample.

    Parameters
    ----------
    votes : (K, K) votes of each ordered pair.
    supported : (K, K) unordered pairs with a vote and a positive propensity, symmetric; where the whole policy is
        known, those it can draw.
    every : every pair within the ranked component (`pairs=all`).
    observed : the supported pairs within it (`pairs=observed`).
    """

    votes: Ints
    supported: Bools
    every: Graph
    observed: Graph

    def graph(self, pairs: Pairs) -> Graph:
        """The graph of that mode."""
        return self.every if pairs == "all" else self.observed

    @property
    def is_complete(self) -> bool:
        """Both modes are one and the same."""
        return bool((self.every.order == self.observed.order).all())


def vote_counts(left: Ints, right: Ints, n_items: int) -> Ints:
    """(K, K) votes of each ordered pair."""
    counts: Ints = np.bincount(left * n_items + right, minlength=n_items * n_items).reshape(n_items, n_items)
    return counts


def drawable_orders(votes: Ints, possible: Bools | None = None) -> Bools:
    """(K, K) ordered pairs not known to be impossible: by the policy, else by the votes on the opposite order.

    An order without votes is impossible from 16 votes on the other; from the first one where sides are fixed.
    """
    if possible is not None:
        return possible
    enough = 1 if has_fixed_sides(votes) else ONE_SIDED_FROM
    drawable: Bools = ~((votes == 0) & (enough <= votes.T)) & ~np.eye(votes.shape[0], dtype=np.bool_)
    return drawable


def has_fixed_sides(votes: Ints) -> bool:
    """Whether pairs are shown in one order each, as in files whose sides are alphabetical.

    With fair sides a pair with m votes has them all on one side with chance 2^(1 - m): the number of such pairs is
    compared with a Poisson variable of that mean.

    Parameters
    ----------
    votes : (K, K) votes of each ordered pair.
    """
    upper = np.triu_indices(votes.shape[0], 1)
    first, second = votes[upper], votes.T[upper]
    repeated = first + second >= 2
    one_sided = int((repeated & (np.minimum(first, second) == 0)).sum())
    if one_sided == 0 or one_sided < FIXED_SHARE * int(repeated.sum()):
        return False
    expected = float((2.0 ** (1.0 - (first + second)[repeated])).sum())
    return bool(gammainc(one_sided, expected) < FIXED_CHANCE)


def support_of(sample: Sample) -> Support:
    """Supported pairs and both graphs of a sample.

    The connected component of supported pairs with most votes is ranked in either mode: between components nothing
    but the outcome model would speak.
    """
    votes = vote_counts(sample.votes.left, sample.votes.right, sample.n_items)
    present = votes > 0 if sample.possible is None else sample.possible
    present = present & ~np.eye(sample.n_items, dtype=np.bool_)
    observed = Graph.largest(_order_weights(present), votes)
    inside = np.outer(observed.component, observed.component) & ~np.eye(sample.n_items, dtype=np.bool_)
    drawable = drawable_orders(votes, sample.possible)
    # A pair that lacks both orders still has a score under `all`: the model's, in both orders.
    drawable = drawable | ~(drawable | drawable.T)
    every = Graph(np.where(inside, _order_weights(drawable), 0.0), observed.component)
    return Support(votes, present | present.T, every, observed)


def automatic_pairs(unsupported: Floats) -> Pairs:
    """`all` where every item's unsupported share (K,) is at most 5%, else `observed`."""
    return "all" if bool((unsupported <= MOST_UNSUPPORTED).all()) else "observed"


def support_statuses(support: Support, unsupported: Floats, *, pairs: Pairs) -> list[SupportStatus]:
    """Each item's status as far as the graph decides it."""
    far = (unsupported > MOST_UNSUPPORTED) & (pairs == "all")
    ranked = support.observed.component & (support.observed.ranked.size > 1)
    return [
        "disconnected" if not inside else "extrapolated" if beyond else "ok"
        for inside, beyond in zip(ranked.tolist(), far.tolist(), strict=True)
    ]


def _order_weights(present: Bools) -> Floats:
    """½ and ½ where both orders are present, 1 where one is."""
    weights: Floats = present / np.maximum(present.astype(np.float64) + present.T, 1.0)
    return weights
