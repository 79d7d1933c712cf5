"""Which pairs carry a score: order weights, the ranked component, and how much rests on pairs without votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from app.stats.gars import Graph
from app.stats.types import Bools, Floats, Ints, Sample

Pairs = Literal["all", "observed"]
SupportStatus = Literal["ok", "extrapolated", "disconnected"]

# An order never seen while the opposite one was this often is taken for one that the policy never draws.
ONE_SIDED_FROM = 16
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
    """(K, K) ordered pairs not known to be impossible: by the policy, else by ≥ 16 votes on the other order only."""
    if possible is not None:
        return possible
    drawable: Bools = ~((votes == 0) & (votes.T >= ONE_SIDED_FROM)) & ~np.eye(votes.shape[0], dtype=np.bool_)
    return drawable


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
