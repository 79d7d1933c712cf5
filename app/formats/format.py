"""What a format says about its files: which column is which field, and how outcomes are spelt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

RowKind = Literal["votes", "judgements"]

SPELLINGS: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(("left", "model_a", "a", "A", "leftvote", "x", "X"), "left")
    | dict.fromkeys(("right", "model_b", "b", "B", "rightvote", "y", "Y"), "right")
    | dict.fromkeys(("tie", "draw", "tievote"), "tie")
    | dict.fromkeys(("both_bad", "tie (bothbad)", "bothbad", "bothbad_vote"), "both_bad")
)
"""How arenas spell an outcome; whatever else a file holds is refused."""

SINGLE_FIELDS = (
    *("id", "context", "offer", "left", "right", "outcome", "voter", "voter_type", "propensity", "created_at"),
    *("count", "judge", "anonymous", "excluded", "kind", "menu", "ranking"),
)
FEATURE, COUNT, PROBABILITY = "feature.", "count.", "probability."
FIELDS_HELP = f"{', '.join(SINGLE_FIELDS)}, feature.NAME, count.OUTCOME, probability.OUTCOME"


def is_field(name: str) -> bool:
    """Whether a column may be mapped to this field."""
    many = any(name.startswith(prefix) and len(name) > len(prefix) for prefix in (FEATURE, COUNT, PROBABILITY))
    return many or name in SINGLE_FIELDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A kind of file. A new one is one more entry of `app.formats.registry`.

    Parameters
    ----------
    name : as `--format` says it.
    outcomes : preset of a board that the import creates.
    fields : field → column (`a/b` joins two, `a.b` looks inside) of what every file has.
    optional : the same for columns that a file may lack.
    every_feature : whether each column `feature.NAME` of the file is a feature.
    kind : what the rows are, unless `votes_where` tells them apart.
    votes_where : (column, value) of the rows that are votes, while the others are judgements.
    judge_spellings : further spellings of outcomes in judgements.
    """

    name: str
    outcomes: str = "arena"
    fields: Mapping[str, str] = field(default_factory=dict)
    optional: Mapping[str, str] = field(default_factory=dict)
    every_feature: bool = False
    kind: RowKind = "votes"
    votes_where: tuple[str, str] | None = None
    judge_spellings: Mapping[str, str] = field(default_factory=dict)
