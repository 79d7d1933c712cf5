"""Outcomes of a vote and what each credits to the first and the second item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np
from pydantic import ConfigDict, Field

from app.domain.errors import Invalid
from app.domain.fields import Name
from app.stats.types import Rule

Weight = Annotated[float, Field(strict=True, ge=0, le=100, allow_inf_nan=False)]
Preset = Literal["binary", "ternary", "arena", "quaternary", "quinary"]


@dataclass(frozen=True, slots=True)
class Category:
    """One outcome: `first` is credited to the item on the left, `second` to the one on the right."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: Name
    first: Weight
    second: Weight


LEFT, RIGHT = Category("left", 1.0, 0.0), Category("right", 0.0, 1.0)
TIE = Category("tie", 0.5, 0.5)
BOTH_GOOD, BOTH_BAD = Category("both_good", 0.5, 0.5), Category("both_bad", 0.5, 0.5)

PRESETS: dict[str, tuple[Category, ...]] = {
    "binary": (LEFT, RIGHT),
    "ternary": (LEFT, RIGHT, TIE),
    "arena": (LEFT, RIGHT, TIE, BOTH_BAD),
    "quaternary": (LEFT, RIGHT, BOTH_GOOD, BOTH_BAD),
    "quinary": (LEFT, RIGHT, BOTH_GOOD, BOTH_BAD, TIE),
}
assert set(PRESETS) == set(get_args(Preset))


def check(categories: Sequence[Category]) -> None:
    """Refuse outcomes whose names repeat or whose weights cannot put one item above another."""
    names = [category.name for category in categories]
    if len(names) != len(set(names)):
        raise Invalid("outcomes-repeat", "two outcomes have one name", path="outcomes", got=names)
    first = any(category.first > category.second for category in categories)
    second = any(category.second > category.first for category in categories)
    if not (first and second):
        raise Invalid(
            "outcomes-cannot-rank",
            "no vote could put one of two items above the other",
            path="outcomes",
            expected="an outcome that credits the first item more, and one that credits the second more",
            got=[[category.name, category.first, category.second] for category in categories],
        )


def rule(categories: Sequence[Category]) -> Rule:
    """The weights as the statistical core reads them, in the order of the categories."""
    return Rule(
        np.array([category.first for category in categories], dtype=np.float64),
        np.array([category.second for category in categories], dtype=np.float64),
    )
