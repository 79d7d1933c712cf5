"""How evenly the votes cover items and pairs, and how much rests on the heaviest of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.stats.debias.weights import sums_by
from app.stats.types import Floats, Ints, Sample, Votes


@dataclass(frozen=True, slots=True)
class Overlap:
    """The weights w = weight / propensity of the votes of each group (arrays of length g).

    Parameters
    ----------
    votes : how many.
    effective : (Σw)²/Σw², the number of equally weighted votes worth as much; 0 without votes.
    smallest_propensity : the smallest one used; NaN without votes.
    largest_weight : max w; 0 without votes.
    """

    votes: Ints
    effective: Floats
    smallest_propensity: Floats
    largest_weight: Floats


def overlap_of_items(sample: Sample) -> Overlap:
    """Each item's votes on either side: g = K."""
    votes = sample.votes
    twice = votes.take(np.tile(np.arange(len(votes)), 2))
    return _overlap(twice, np.concatenate([votes.left, votes.right]), sample.n_items)


def overlap_of_pairs(sample: Sample) -> Overlap:
    """Each unordered pair's votes: g = K (K - 1) / 2, in the order of `numpy.triu_indices(K, 1)`."""
    votes, size = sample.votes, sample.n_items
    low, high = np.minimum(votes.left, votes.right), np.maximum(votes.left, votes.right)
    number = np.zeros((size, size), dtype=np.int64)
    upper = np.triu_indices(size, 1)
    number[upper] = np.arange(upper[0].size)
    return _overlap(votes, number[low, high], upper[0].size)


def weights_of(votes: Votes) -> Floats:
    """(m,) weight / propensity."""
    weights: Floats = votes.weight / votes.propensity
    return weights


def heaviest(votes: Votes, most: int) -> Ints:
    """Positions of the `most` votes with the largest weights, largest first, earlier ones first among equals."""
    weight = weights_of(votes)
    kept = np.arange(weight.size)
    if weight.size > most:
        kept = np.flatnonzero(weight >= np.partition(weight, weight.size - most)[weight.size - most])
    return kept[np.argsort(-weight[kept], kind="stable")][:most].astype(np.int64)


def _overlap(votes: Votes, group: Ints, n_groups: int) -> Overlap:
    weight = weights_of(votes)
    total, square = sums_by(group, weight, n_groups), sums_by(group, weight**2, n_groups)
    smallest, largest = np.full(n_groups, np.nan), np.zeros(n_groups)
    np.fmin.at(smallest, group, votes.propensity)
    np.maximum.at(largest, group, weight)
    effective = np.divide(total**2, square, out=np.zeros(n_groups), where=square > 0)
    return Overlap(np.bincount(group, minlength=n_groups).astype(np.int64), effective, smallest, largest)
