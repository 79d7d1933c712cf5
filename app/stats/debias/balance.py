"""The balance check: do the propensities add up to the rows that are there?

If pi_jk is the chance of a label, S_ijk / pi_jk summed over the rows estimates the number of rows, for every ordered
pair. A wrong unit, lost offers, non-response or uncorrected exclusions break that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from app.stats.debias.propensity import exposure_counts
from app.stats.debias.support import ONE_SIDED_FROM, drawable_orders, vote_counts
from app.stats.debias.weights import sums_by
from app.stats.types import Bools, Floats, Ints, Sample, Votes

OWN_GROUP_FROM = 25
LEAST_ALARM = 4.0
FALSE_ALARM = 0.01


@dataclass(frozen=True, slots=True)
class Balance:
    """z of each group of ordered pairs and the verdict.

    Parameters
    ----------
    pairs : (g,) number of ordered pairs in each group.
    members : (g, 2) the (left, right) of a pair on its own; right is -1 where the rare pairs of the left item are
        pooled, both are -1 for all pairs together.
    z : (g,) (mean T - pairs) / standard error.
    threshold : |z| from which the alarm rings.
    """

    pairs: Ints
    members: Ints
    z: Floats
    threshold: float

    @property
    def largest(self) -> float:
        """max |z|, 0 without a group."""
        return float(np.abs(self.z).max(initial=0.0))

    @property
    def consistent(self) -> bool:
        return self.largest <= self.threshold


def drawable_pairs(sample: Sample, offers: Floats) -> Bools:
    """(K, K) ordered pairs that the policy can draw, as far as it is known.

    Without a known policy a pair without votes counts as drawable, unless the opposite order or the exposure of both
    items would make one expect at least 16 votes of it.

    Parameters
    ----------
    sample : rows and votes.
    offers : (K, K) eligible offers of each ordered pair.
    """
    votes = vote_counts(sample.votes.left, sample.votes.right, sample.n_items)
    drawable: Bools = drawable_orders(votes, sample.possible) & (offers > 0)
    if sample.possible is None:
        drawable &= ~((votes == 0) & (exposure_counts(votes.astype(np.float64), offers) >= ONE_SIDED_FROM))
    return drawable


def check_balance(sample: Sample, drawable: Bools) -> Balance:
    """Compare Σ S/pi with the rows over groups of ordered pairs.

    Groups: each ordered pair with at least 25 votes, the other pairs pooled by left item, and all pairs. With
    T_i = Σ_{pairs of g} S_i/pi (averaged over the row's offers), z = (mean T - |g|) / se and
    se² = (|g| ΣT²/ΣT - |g|²) / n. The alarm rings above max(4, Bonferroni over groups at 1%).

    Parameters
    ----------
    sample : rows and votes, propensities as used.
    drawable : (K, K) ordered pairs that the policy can draw.
    """
    votes, size = sample.votes, sample.n_items
    drawable = drawable | (vote_counts(votes.left, votes.right, size) > 0)
    np.fill_diagonal(drawable, False)
    group, members = _groups(votes, drawable)
    pairs = np.bincount(group[drawable], minlength=members.shape[0])
    pairs[-1] = drawable.sum()
    z = _z(_row_sums(votes, group[votes.left, votes.right], members.shape[0]), pairs, sample.n_rows)
    heard = np.bincount(group[votes.left, votes.right], minlength=members.shape[0]) > 0
    heard[-1] = len(votes) > 0
    threshold = max(LEAST_ALARM, float(ndtri(1.0 - FALSE_ALARM / (2 * max(int(heard.sum()), 1)))))
    return Balance(pairs[heard], members[heard], z[heard], threshold)


def _groups(votes: Votes, drawable: Bools) -> tuple[Ints, Ints]:
    """(K, K) group of each ordered pair and (g, 2) what each group is; the last is all pairs."""
    size = drawable.shape[0]
    frequent = drawable & (vote_counts(votes.left, votes.right, size) >= OWN_GROUP_FROM)
    group = np.repeat(np.arange(size), size).reshape(size, size)
    group[frequent] = size + np.arange(int(frequent.sum()))
    pooled = np.stack([np.arange(size), np.full(size, -1)], axis=1)
    return group, np.concatenate([pooled, np.argwhere(frequent), [[-1, -1]]])


def _row_sums(votes: Votes, group: Ints, n_groups: int) -> tuple[Floats, Floats]:
    """ΣT and ΣT² over rows (g,)."""
    weight = votes.weight / votes.propensity
    cell, at = np.unique(votes.row * n_groups + group, return_inverse=True)
    sums = sums_by(at, weight, cell.size)
    first = sums_by(cell % n_groups, sums, n_groups)
    second = sums_by(cell % n_groups, sums**2, n_groups)
    _, at = np.unique(votes.row, return_inverse=True)
    whole = np.bincount(at, weights=weight)
    first[-1], second[-1] = whole.sum(), (whole**2).sum()
    return first, second


def _z(sums: tuple[Floats, Floats], pairs: Ints, n_rows: int) -> Floats:
    first, second = sums
    size = pairs.astype(np.float64)
    ratio = np.divide(second, first, out=size.copy(), where=first > 0)
    # Where every row has the same T the formula gives no error at all; a row's worth is allowed for then.
    variance = np.maximum((size * ratio - size**2) / n_rows, (size / n_rows) ** 2)
    z: Floats = np.divide(first / n_rows - size, np.sqrt(variance), out=np.zeros(size.shape), where=variance > 0)
    return z
