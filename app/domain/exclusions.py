"""Exclusions: which votes do not count, and why."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated
from uuid import UUID

from pydantic import ConfigDict, Field, TypeAdapter

from app.domain.ballots import VoterType
from app.domain.errors import Invalid
from app.domain.fields import Moment, Name

SUPERSEDED = "superseded"
Reason = Annotated[str, Field(strict=True, min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]+$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteFilter:
    """Votes that meet every condition given; times are those of the vote, the first included, the last not."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    voter_type: VoterType | None = None
    item: Name | None = None
    outcome: Name | None = None
    context: Name | None = None
    created_from: Moment | None = None
    created_to: Moment | None = None

    def __post_init__(self) -> None:
        if all(getattr(self, entry.name) is None for entry in fields(self)):
            expected = [entry.name for entry in fields(self)]
            raise Invalid(
                "empty-filter", "a filter without a condition is every vote", path="filter", expected=expected
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ExclusionDraft:
    """A rule as it is sent: one vote, or all of a voter's (later ones too), or all that a filter finds."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    reason: Reason
    vote: UUID | None = None
    voter: Name | None = None
    filter: VoteFilter | None = None


FILTER: TypeAdapter[VoteFilter] = TypeAdapter(VoteFilter)


def check(draft: ExclusionDraft) -> None:
    """Refuse a rule that names no target, or two; and the reason that re-votes use."""
    targets = [name for name in ("vote", "voter", "filter") if getattr(draft, name) is not None]
    if len(targets) != 1:
        expected = "one of vote, voter, filter"
        raise Invalid("one-target", "a rule has one target", path="vote", expected=expected, got=targets)
    if draft.reason == SUPERSEDED:
        detail = "this reason is kept for votes that a re-vote superseded"
        raise Invalid("reason-taken", detail, path="reason", got=draft.reason)
