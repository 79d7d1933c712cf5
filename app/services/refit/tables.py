"""One ranking as a snapshot keeps it, and the statuses of its items and of the whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np

from app.services.refit.population import distinct
from app.stats.classical import count_cells
from app.stats.debias.clusters import Clustering
from app.stats.debias.one_step import effective, weight_sums
from app.stats.types import Bools, Floats, Ints, Sample

ItemStatus = Literal["ok", "few_votes", "extrapolated", "separated", "disconnected"]

FEW_VOTES = 10
"""An item with fewer votes is said to have few."""
FEW_CONTEXTS = 30
"""Below so many distinct contexts, intervals for new contexts are rough."""
BOARD_STATUSES = (
    "propensities_inconsistent",
    "disconnected",
    "extrapolated",
    "few_contexts",
    "few_votes",
    "ok",
)
"""A ranking has the first of these that applies."""


@dataclass(frozen=True)
class Standing:
    """What is said of each item besides its score (arrays of length K).

    Parameters
    ----------
    votes : counted votes of the item against items that can be drawn.
    effective_votes : (Σw)²/Σw².
    unsupported : share of the score that rests on pairs without votes.
    status : of each item.
    """

    votes: Ints
    effective_votes: Floats
    unsupported: Floats
    status: tuple[ItemStatus, ...]


@dataclass(frozen=True)
class Table:
    """One ranking.

    Parameters
    ----------
    estimand, estimator, pairs, segment : which one; segment '' is the whole board.
    status : the first board status that applies.
    ranked : (d,) positions, among the board's items, of those with a score.
    value, covariance : (d,) and (d, d); without valid intervals the covariance is None.
    n_rows, contexts : rows and distinct contexts behind it.
    rows_used : rows that mu of all pairs was averaged over, fewer than `n_rows` on large boards.
    standing : of all K items.
    auto : the mode that `pairs=auto` takes for this estimand.
    """

    estimand: str
    estimator: str
    pairs: str
    segment: str
    status: str
    ranked: Ints
    value: Floats
    covariance: Floats | None
    n_rows: int
    rows_used: int
    contexts: int
    standing: Standing
    auto: str


@dataclass(frozen=True)
class Counts:
    """What votes come to, item by item (arrays of length K): counts of disjoint sets of votes add.

    Parameters
    ----------
    votes : of the item against items that can be drawn.
    weight, square : Σw and Σw², w what a vote weighs.
    won, lost : credits.
    """

    votes: Ints
    weight: Floats
    square: Floats
    won: Floats
    lost: Floats

    @classmethod
    def of(cls, sample: Sample) -> Counts:
        """Count a sample."""
        counts = count_cells(sample.votes, sample.n_items, sample.rule.n_categories)
        first, second = counts @ sample.rule.first, counts @ sample.rule.second
        total = counts.sum(axis=(1, 2)) + counts.sum(axis=(0, 2))
        weight, square = weight_sums(sample.votes, sample.n_items)
        return cls(
            total.astype(np.int64),
            weight,
            square,
            first.sum(axis=1) + second.sum(axis=0),
            second.sum(axis=1) + first.sum(axis=0),
        )

    def __add__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))

    def __sub__(self, other: Counts) -> Counts:
        return Counts(*(getattr(self, each.name) - getattr(other, each.name) for each in fields(self)))


@dataclass(frozen=True)
class Tally:
    """Counts of a sample that every ranking of it shares.

    Parameters
    ----------
    votes, effective_votes : (K,).
    separated : (K,) items that were credited everything or nothing.
    contexts : distinct ones.
    consistent : whether the propensities add up.
    prompts : whether the population is that of new contexts.
    clusters : what the variance is taken over; with fewer than two there is none.
    """

    votes: Ints
    effective_votes: Floats
    separated: Bools
    contexts: int
    consistent: bool
    prompts: bool
    clusters: int

    @classmethod
    def of(cls, sample: Sample, *, consistent: bool, clustering: Clustering) -> Tally:
        """Count a sample."""
        clusters, contexts = clustering.least(sample), distinct(sample.context)
        prompts = not clustering.fixed
        return cls.made(Counts.of(sample), contexts, clusters=clusters, consistent=consistent, prompts=prompts)

    @classmethod
    def made(cls, counts: Counts, contexts: int, *, clusters: int, consistent: bool, prompts: bool) -> Tally:
        """What counts say."""
        return cls(
            votes=counts.votes,
            effective_votes=effective(counts.weight, counts.square),
            separated=(counts.won + counts.lost > 0) & ((counts.won == 0) | (counts.lost == 0)),
            contexts=contexts,
            consistent=consistent,
            prompts=prompts,
            clusters=clusters,
        )

    def covariance(self, covariance: Floats | None) -> Floats | None:
        """The covariance, where there is one: a single cluster does not scatter."""
        return covariance if self.clusters > 1 else None

    def standing(self, support: Sequence[ItemStatus], unsupported: Floats) -> Standing:
        """Each item's status: what its support says, unless a lesser trouble is all there is."""
        status = tuple(
            _item_status(given, bool(separated), int(votes) if self.clusters > 1 else 0)
            for given, separated, votes in zip(support, self.separated, self.votes, strict=True)
        )
        return Standing(self.votes, self.effective_votes, unsupported, status)

    def status(self, standing: Standing) -> str:
        """The first status of a ranking that applies."""
        applies = {
            "propensities_inconsistent": not self.consistent,
            "disconnected": "disconnected" in standing.status,
            "extrapolated": "extrapolated" in standing.status,
            "few_contexts": self.prompts and self.contexts < FEW_CONTEXTS,
            "few_votes": not standing.status or bool({"few_votes", "separated"} & set(standing.status)),
            "ok": True,
        }
        return next(name for name in BOARD_STATUSES if applies[name])


def _item_status(support: ItemStatus, separated: bool, votes: int) -> ItemStatus:
    if support == "disconnected":
        return support
    if separated or support == "separated":
        return "separated"
    if support == "extrapolated":
        return support
    return "few_votes" if votes < FEW_VOTES or support == "few_votes" else "ok"
