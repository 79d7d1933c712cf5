"""What diagnostics say of who was compared with whom: balance, weights and support."""

from __future__ import annotations

from uuid import UUID

from pydantic import BaseModel


class Section(BaseModel):
    """`ok`, or the code of what is wrong or missing; what cannot be had is null or empty."""

    status: str


class BalanceGroup(BaseModel):
    """An ordered pair; without `right`, the rare pairs of the left item; without either, all pairs."""

    left: str | None
    right: str | None
    ordered_pairs: int
    z: float


class BalanceSection(Section):
    """Σ 1/propensity against the rows, by group: the 200 most conspicuous are listed. Alarm: |z| above `threshold`."""

    threshold: float | None
    largest_z: float | None
    groups: int
    listed: list[BalanceGroup]


class Weights(BaseModel):
    """Votes, what they are worth in equally weighted ones, and the extremes of propensities and weights."""

    votes: int
    effective_votes: float
    smallest_propensity: float | None
    largest_weight: float | None


class ItemWeights(Weights):
    """An item's votes."""

    item: str


class PairWeights(Weights):
    """An unordered pair's votes."""

    first: str
    second: str


class HeavyVote(BaseModel):
    """A vote with its share of all weights."""

    vote: UUID
    left: str
    right: str
    propensity: float
    weight: float
    share: float


class AtFloor(BaseModel):
    """Share of the votes, and of their weights, whose estimated propensity was raised to the floor."""

    votes: float
    weight: float


class OverlapSection(Section):
    """Of pairs, the 1,000 worth fewest votes are listed; `at_floor` is null where propensities are logged."""

    items: list[ItemWeights]
    pairs: list[PairWeights]
    heaviest: list[HeavyVote]
    at_floor: AtFloor | None


class SupportSection(Section):
    """Unordered pairs with votes, those with votes in both orders, and the groups of items that votes link."""

    pairs: int
    supported: int
    both_orders: int
    components: list[list[str]]
