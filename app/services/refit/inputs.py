"""What a refit reads, as plain columns: nothing below depends on the database."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.exclusions import SUPERSEDED
from app.stats.types import Bools, Floats, Ints

OPEN = np.iinfo(np.int64).max
"""End of a span that has not ended, µs."""


@dataclass(frozen=True, slots=True)
class VoteTable:
    """Stored votes on pairs, and the pairs of those on menus, arrays of length m; items by position in the roster.

    Parameters
    ----------
    ids : database ids; all pairs of one menu share theirs.
    context, offer : database ids, 0 where there is none.
    left, right, outcome : the ordered pair and the category.
    voter : 64 bits of the voter's name, 0 for an anonymous one.
    propensity : as sent, NaN where none was.
    created : µs.
    reason : index among the reasons for exclusion, -1 where the vote counts.
    """

    ids: Ints
    context: Ints
    offer: Ints
    left: Ints
    right: Ints
    outcome: Ints
    voter: Ints
    propensity: Floats
    created: Ints
    reason: Ints

    def take(self, index: Ints | Bools) -> VoteTable:
        """The votes named by `index` (positions or a mask)."""
        return VoteTable(*(getattr(self, name)[index] for name in self.__slots__))

    def __len__(self) -> int:
        return int(self.ids.size)


@dataclass(frozen=True, slots=True)
class RankingTable:
    """Stored votes on menus, arrays of length m.

    Parameters
    ----------
    ids : database ids.
    context, offer : database ids, 0 where there is none.
    tiers : (m, K) tier of each item of the roster, 0 the best, -1 off the menu.
    voter : 64 bits of the voter's name, 0 for an anonymous one.
    propensity : chance of the menu within its offer, as sent, NaN where none was.
    created : µs.
    reason : index among the reasons for exclusion, -1 where the vote counts.
    """

    ids: Ints
    context: Ints
    offer: Ints
    tiers: NDArray[np.int16]
    voter: Ints
    propensity: Floats
    created: Ints
    reason: Ints

    def take(self, index: Ints | Bools) -> RankingTable:
        """The rankings named by `index` (positions or a mask)."""
        return RankingTable(*(getattr(self, name)[index] for name in self.__slots__))

    def __len__(self) -> int:
        return int(self.ids.size)


@dataclass(frozen=True, slots=True)
class Roster:
    """The board's items, by name.

    Parameters
    ----------
    ids, names : of every item that was ever on the board.
    active : whether it can be drawn now.
    span_item, span_from, span_to : the times (µs) in which items could be drawn; span_item indexes `names`.
    label_cost : what an item adds to the cost of a label.
    cost : of deployment.
    """

    ids: Ints
    names: tuple[str, ...]
    active: Bools
    span_item: Ints
    span_from: Ints
    span_to: Ints
    label_cost: Floats
    cost: Floats

    def positions(self, ids: Ints) -> Ints:
        """Index of items by their database ids."""
        order = np.argsort(self.ids)
        return order[np.searchsorted(self.ids, ids, sorter=order)]


@dataclass(frozen=True, slots=True)
class ContextTable:
    """Contexts that count, sorted by id; the first entry, id 0, stands for votes without one.

    Parameters
    ----------
    ids, key, created : database id, content hash, creation in µs.
    pattern : index of its features among the distinct `features`; with judges, among the distinct pairs of features
        and judgements.
    features : distinct feature documents in canonical order.
    """

    ids: Ints
    key: Ints
    created: Ints
    pattern: Ints
    features: Sequence[Mapping[str, Any]]

    def take(self, index: Bools) -> ContextTable:
        """The contexts of a mask, with the features of all."""
        return ContextTable(self.ids[index], self.key[index], self.created[index], self.pattern[index], self.features)


@dataclass(frozen=True, slots=True)
class OfferTable:
    """Named offers and draws, sorted by id.

    Parameters
    ----------
    ids, context : database ids.
    key, created : hash of the name, µs.
    drawn : whether pairs were drawn for it here, by the board's own policy.
    """

    ids: Ints
    context: Ints
    key: Ints
    created: Ints
    drawn: Bools

    def take(self, index: Bools) -> OfferTable:
        """The offers of a mask."""
        return OfferTable(*(getattr(self, name)[index] for name in self.__slots__))

    def answered_by(self, votes: VoteTable) -> Bools:
        """(m,) votes on offers that pairs were drawn for here."""
        return np.isin(votes.offer, self.ids[self.drawn])

    def made(self, ids: Ints) -> Ints:
        """When offers were made, by their ids."""
        return self.created[np.searchsorted(self.ids, ids)]


@dataclass(frozen=True, slots=True)
class DrawTable:
    """Assignments, several of one drawn pair where it was leased again or goes to several annotators.

    Parameters
    ----------
    offer : database id.
    left, right : items by their position in the roster.
    answered : µs, when it was answered, `OPEN` where it was not.
    """

    offer: Ints
    left: Ints
    right: Ints
    answered: Ints


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge and how much of it bears on the board: its judgements of contexts that count and of active items."""

    name: str
    judgements: int
    contexts: int
    used: bool


@dataclass(frozen=True, slots=True)
class Margins:
    """What judges say of patterns, once for each pattern, judge and pair (arrays of length g).

    Parameters
    ----------
    pattern : in ascending order.
    judge : index among the q used ones.
    left, right : the pair among the K active items, `left` the earlier one.
    margin : of `left` over `right`.
    n_items, n_judges : K and q.
    """

    pattern: Ints
    judge: Ints
    left: Ints
    right: Ints
    margin: Floats
    n_items: int
    n_judges: int

    def of(self, patterns: Ints) -> NDArray[np.float32]:
        """(u, K, K, q) of these patterns, see `Covariates`."""
        found = np.full((patterns.size, self.n_items, self.n_items, self.n_judges), np.nan, dtype=np.float32)
        start, end = np.searchsorted(self.pattern, patterns), np.searchsorted(self.pattern, patterns, side="right")
        row = np.repeat(np.arange(patterns.size), end - start)
        at = np.arange(row.size) + np.repeat(end - np.cumsum(end - start), end - start)
        left, right, judge, margin = self.left[at], self.right[at], self.judge[at], self.margin[at]
        found[row, left, right, judge] = margin
        found[row, right, left, judge] = -margin
        return found


@dataclass(frozen=True, slots=True)
class Judges:
    """Judges' predictions, by name.

    Parameters
    ----------
    judges : every one that ever judged a context of the board; none where only some of its rows are read.
    document : (u,) of each pattern, its features among the distinct ones.
    margins : of the used judges; None without one.
    """

    judges: tuple[Judge, ...]
    document: Ints
    margins: Margins | None


@dataclass(frozen=True, slots=True)
class Inputs:
    """Everything that decides a snapshot besides the board's configuration.

    Parameters
    ----------
    reasons : names of the exclusions.
    judges : None on a board without judgements.
    draws : None on a board that no pairs were drawn for.
    rankings : votes on menus, None on a board without one.
    """

    votes: VoteTable
    reasons: tuple[str, ...]
    contexts: ContextTable
    offers: OfferTable
    roster: Roster
    judges: Judges | None = None
    draws: DrawTable | None = None
    rankings: RankingTable | None = None

    @property
    def documents(self) -> Sequence[Mapping[str, Any]]:
        """(u,) features of each pattern."""
        features = self.contexts.features
        return features if self.judges is None else [features[at] for at in self.judges.document.tolist()]

    def superseded(self, reason: Ints) -> Bools:
        """(m,) which of these reasons, as votes have them, is that another vote stands in the vote's place."""
        named: Bools = np.array([each == SUPERSEDED for each in (*self.reasons, "")])[reason]
        return named
