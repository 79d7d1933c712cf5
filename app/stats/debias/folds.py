"""Cross-fitting folds and the canonical order of votes: functions of content, never of ids or arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from app.stats.types import Bools, Ints

Hashes = NDArray[np.uint64]
FoldRule = Literal["context", "offer", "voter"]
ClusterBy = Literal["context", "voter", "both"]

# Below this many units a fold, ranks of hashes spread the units evenly where remainders could leave folds empty.
UNITS_PER_FOLD = 10


@dataclass(frozen=True, slots=True)
class RowContent:
    """What each row of the estimator is made of, as content hashes (all arrays of length n).

    Parameters
    ----------
    context : hash of the context's public id; of the vote's own content where it has none.
    offer : hash of the offer's content.
    labelled : rows with a vote.
    voter : hash of the row's one voter (of the offer where it is anonymous), or None where rows mix voters.
    """

    context: Hashes
    offer: Hashes
    labelled: Bools
    voter: Hashes | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """Where units go: by their hash modulo V; labelled ones in turn by rank of hash where there are few of them.

    Parameters
    ----------
    n_folds : V.
    few : sorted hashes of the labelled units where they are few, else none.
    """

    n_folds: int
    few: Hashes

    @classmethod
    def of(cls, labelled: Hashes, n_folds: int) -> Spread:
        """The spread of a board whose labelled rows have these units."""
        few = _distinct(labelled)
        return cls(n_folds, few if few.size < UNITS_PER_FOLD * n_folds else few[:0])

    def fold(self, unit: Hashes) -> Ints:
        """(n,) the fold of each unit, of ones that come later too."""
        fold = (unit % np.uint64(self.n_folds)).astype(np.int64)
        if not self.few.size:
            return fold
        place = np.minimum(np.searchsorted(self.few, unit), self.few.size - 1)
        return np.where(self.few[place] == unit, place % self.n_folds, fold)


@dataclass(frozen=True, slots=True)
class Folds:
    """The fold (n,) of each row in 0 .. V-1, what decided it, and how."""

    fold: Ints
    rule: FoldRule
    spread: Spread


def content_hash(values: Sequence[str]) -> Hashes:
    """64-bit BLAKE2 of each string: (n,), the same on every machine."""
    known = {value: int.from_bytes(blake2b(value.encode(), digest_size=8).digest(), "little") for value in set(values)}
    return np.fromiter((known[value] for value in values), dtype=np.uint64, count=len(values))


def mix(*columns: Hashes | Ints) -> Hashes:
    """One hash (n,) of several integer columns, sensitive to their order (splitmix64's finaliser)."""
    state = np.zeros(columns[0].shape, dtype=np.uint64)
    for column in columns:
        state = state + column.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state = state ^ (state >> np.uint64(31))
    return state


def canonical_order(
    *content: NDArray[Any], ties: Sequence[NDArray[Any]] = ()
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Order votes by content alone, so that a shuffled file gives the same bits.

    Parameters
    ----------
    content : columns (m,) that say what a vote is, most significant first (context, left, right, voter, outcome);
        strings, or integers whose order is that of the content.
    ties : columns that order votes of equal content (the propensity), not part of it.

    Returns
    -------
    order : (m,) positions of the votes in canonical order.
    occurrence : (m,) for each *ordered* vote, how many before it have equal content.
    """
    order = np.lexsort([*reversed(ties), *reversed(content)])
    if order.size == 0:
        return order, order
    new = np.ones(order.size, dtype=np.bool_)
    new[1:] = np.logical_or.reduce([column[order][1:] != column[order][:-1] for column in content])
    position = np.arange(order.size)
    return order, position - np.maximum.accumulate(np.where(new, position, 0))


def assign_folds(content: RowContent, n_folds: int, *, by: ClusterBy) -> Folds:
    """Spread rows over V folds so that dependent rows share one.

    By voter where the variance is clustered by voter and each row has one; by context where there are at least 10 V of
    them; else by voter (`both`) or by offer. A rule that would leave a training set empty gives way to the next.

    Parameters
    ----------
    content : the rows.
    n_folds : V ≥ 2.
    by : what the variance is clustered by.
    """
    for rule, unit in _candidates(content, n_folds, by):
        if _distinct(unit[content.labelled]).size > 1:
            return _folds(unit, content.labelled, n_folds, rule)
    return _folds(content.offer, content.labelled, n_folds, "offer")


def _candidates(content: RowContent, n_folds: int, by: ClusterBy) -> list[tuple[FoldRule, Hashes]]:
    candidates: list[tuple[FoldRule, Hashes]] = []
    if by == "voter" and content.voter is not None:
        candidates.append(("voter", content.voter))
    if _distinct(content.context).size >= UNITS_PER_FOLD * n_folds:
        candidates.append(("context", content.context))
    if by == "both" and content.voter is not None:
        candidates.append(("voter", content.voter))
    return candidates


def _folds(unit: Hashes, labelled: Bools, n_folds: int, rule: FoldRule) -> Folds:
    spread = Spread.of(unit[labelled], n_folds)
    return Folds(spread.fold(unit), rule, spread)


def _distinct(hashes: Hashes) -> Hashes:
    """Sorted and without repetition; NumPy's own `unique` takes ten times as long on millions of hashes."""
    ordered = np.sort(hashes)
    first = np.ones(ordered.size, dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return ordered[first]
