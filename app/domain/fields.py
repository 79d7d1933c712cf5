"""The ranges of single fields, as annotations that the parser at the door reads."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field

VISIBLE = r"^[^\x00-\x1f\x7f]+$"
NO_NUL = r"^[^\x00]*$"
"""PostgreSQL stores every character but this one."""

EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC)
LARGEST = 1e30
"""Bound of numeric features: squares of standardised values stay finite."""

DEEPEST = 200
"""Levels of a payload: what is written out with it adds some of its own to what the writer of JSON can do."""

SMALLEST_PROPENSITY = 1e-9
"""Below it a weight 1/pi would be no number to compute with."""


def _written_time(value: Any) -> Any:
    # The parser would read a number, written out or not, as seconds of 1970; the contract knows written times only.
    if isinstance(value, datetime) or (isinstance(value, str) and ":" in value):
        return value
    raise ValueError("Input should be a time as in RFC 3339, such as 2026-11-30T12:00:00Z")


def _not_too_deep(value: Any) -> Any:
    level, depth = [value], 0
    while level := [inner for each in level if isinstance(each, dict | list) for inner in _inside(each)]:
        depth += 1
        if depth > DEEPEST:
            raise ValueError(f"Input should be nested at most {DEEPEST} levels deep")
    return value


def _inside(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


Slug = Annotated[str, Field(strict=True, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
Name = Annotated[str, Field(strict=True, min_length=1, max_length=200, pattern=VISIBLE)]
"""Names of items, outcomes, judges; ids of contexts, offers and voters."""
Label = Annotated[str, Field(strict=True, min_length=1, max_length=100, pattern=r"^[^\x00-\x1f\x7f:]+$")]
"""Names that a query may join to a value with a colon."""
Line = Annotated[str, Field(strict=True, max_length=2_000, pattern=NO_NUL)]
Prose = Annotated[str, Field(strict=True, max_length=200_000, pattern=NO_NUL)]
Payload = Annotated[Any, AfterValidator(_not_too_deep)]
"""Any JSON, returned as it was sent."""
Flag = Annotated[bool, Field(strict=True)]
Amount = Annotated[float, Field(strict=True, ge=0, le=1e9, allow_inf_nan=False)]
Positive = Annotated[float, Field(strict=True, gt=0, le=1e9, allow_inf_nan=False)]
Share = Annotated[float, Field(strict=True, ge=0, le=1, allow_inf_nan=False)]
Propensity = Annotated[float, Field(strict=True, ge=SMALLEST_PROPENSITY, le=1, allow_inf_nan=False)]
Moment = Annotated[AwareDatetime, Field(ge=EARLIEST, le=LATEST), BeforeValidator(_written_time)]


def whole(least: int, most: int) -> Any:
    """A whole number within bounds."""
    return Annotated[int, Field(strict=True, ge=least, le=most)]
