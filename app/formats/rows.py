"""What every format is read into: votes, judgements, and the reason why a row is neither."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple

Record = dict[str, Any]


class BadRow(Exception):
    """A row that cannot be read; the message says why and what would have been accepted."""


class UnusableFile(Exception):
    """A file that cannot be read at all with these options: nothing was written."""


class BrokenFile(Exception):
    """A file that stops in the middle: what came before it stays imported."""


class Place(NamedTuple):
    """Where a record starts: its line (its row, in Parquet), and its number where it is an element of an array."""

    line: int
    element: int | None = None

    def __str__(self) -> str:
        return f"line {self.line}" if self.element is None else f"line {self.line}, element {self.element}"


class Located(NamedTuple):
    """A record, or what is wrong with it, and where it starts."""

    place: Place
    record: Record | BadRow


class VoteRow(NamedTuple):
    """One label, `times` over: of an ordered pair, or of a menu, which has a ranking in place of sides and outcome."""

    left: str | None
    right: str | None
    outcome: str | None
    context: str | None = None
    features: dict[str, Any] | None = None
    offer: str | None = None
    voter: str | None = None
    voter_type: str | None = None
    propensity: float | None = None
    created_at: datetime | None = None
    excluded: str | None = None
    id: str | None = None
    times: int = 1
    kind: str | None = None
    menu: list[str] | None = None
    ranking: list[list[str]] | None = None


class JudgementRow(NamedTuple):
    """A judge's chances of each category for an ordered pair."""

    judge: str
    context: str
    left: str
    right: str
    probabilities: Mapping[str, float]
    features: dict[str, Any] | None = None
