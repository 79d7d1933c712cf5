"""From a cell of any file to a value: each function raises `BadRow` rather than guess."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from app.domain.features import LONGEST_LEVEL, LONGEST_TEXT, FeatureKind
from app.domain.fields import EARLIEST, LATEST, SMALLEST_PROPENSITY
from app.formats.rows import BadRow

LONGEST = 200
UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]")
MOST_VOTES = 10_000_000
FEWEST_SECONDS = 1e8


def text(value: Any, field: str) -> str | None:
    """A name or an identifier; empty cells are None."""
    if value.__class__ is not str:
        value = written(value, field)
    if not value:
        return None
    if len(value) > LONGEST or UNPRINTABLE.search(value):
        raise BadRow(f"{field}: expected at most {LONGEST} printable characters, got {shown(value)}")
    return str(value)


def written(value: Any, field: str) -> str:
    """A cell as its text; empty where there is nothing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, str | int | float):
        return str(value)
    raise BadRow(f"{field}: expected text or a number, got {type(value).__name__}")


def choice(*accepted: str) -> Callable[[Any, str], str | None]:
    """A parser of one of a few words; an empty cell is None."""

    def parse(value: Any, field: str) -> str | None:
        spelt = written(value, field)
        if spelt and spelt not in accepted:
            raise BadRow(f"{field}: unknown {shown(spelt)}; accepted: {', '.join(accepted)}")
        return spelt or None

    return parse


def number(value: Any, field: str) -> float | None:
    """A finite number; a mapping of numbers counts as their sum."""
    if isinstance(value, Mapping):
        parts = [number(part, field) for part in value.values()]
        return sum(part for part in parts if part is not None)
    spelt = written(value, field)
    if not spelt:
        return None
    try:
        parsed = float(spelt)
    except ValueError:
        parsed = math.nan
    if not math.isfinite(parsed):
        raise BadRow(f"{field}: expected a number, got {shown(spelt)}")
    return parsed


def chance(value: Any, field: str) -> float | None:
    """A propensity."""
    parsed = number(value, field)
    if parsed is not None and not SMALLEST_PROPENSITY <= parsed <= 1:
        raise BadRow(f"{field}: expected a number from {SMALLEST_PROPENSITY:g} to 1, got {parsed:g}")
    return parsed


def share(value: Any, field: str) -> float:
    """A probability of one category, 0 where the cell is empty."""
    parsed = number(value, field) or 0.0
    if not 0 <= parsed <= 1:
        raise BadRow(f"{field}: expected a number from 0 to 1, got {parsed:g}")
    return parsed


def count(value: Any, field: str) -> int:
    """How often a row happened, 0 where the cell is empty."""
    parsed = number(value, field) or 0.0
    if parsed < 0 or parsed > MOST_VOTES or parsed != int(parsed):
        raise BadRow(f"{field}: expected a whole number from 0 to {MOST_VOTES}, got {parsed:g}")
    return int(parsed)


def moment(value: Any, field: str) -> datetime | None:
    """A time: unix seconds or ISO 8601, where no zone means UTC."""
    spelt = written(value, field).strip()
    if not spelt:
        return None
    parsed = value if isinstance(value, datetime) else _time(spelt)
    if parsed is not None and not parsed.tzinfo:
        parsed = parsed.replace(tzinfo=UTC)
    if parsed is None or not EARLIEST <= parsed <= LATEST:
        span = f"between {EARLIEST.year} and {LATEST.year}"
        raise BadRow(f"{field}: expected unix seconds or an ISO 8601 time {span}, got {shown(spelt)}")
    return parsed


def _time(spelt: str) -> datetime | None:
    try:
        seconds = float(spelt)
    except ValueError:
        seconds = 0.0
    try:
        # A smaller number is a date without dashes.
        return datetime.fromtimestamp(seconds, UTC) if seconds >= FEWEST_SECONDS else datetime.fromisoformat(spelt)
    except (ValueError, OverflowError, OSError):
        return None


def flag(value: Any, field: str) -> bool | None:
    """Yes or no."""
    spelt = written(value, field).lower()
    if spelt in ("true", "1", "1.0"):
        return True
    if spelt in ("false", "0", "0.0"):
        return False
    if spelt:
        raise BadRow(f"{field}: expected true or false, got {shown(spelt)}")
    return None


def vector(value: Any, field: str) -> list[float] | None:
    """A list of finite numbers, or its JSON text."""
    values = _listed(value, field, "a list of numbers")
    if values is None:
        return None
    parsed = [number(part, field) for part in values]
    if any(part is None for part in parsed):
        raise BadRow(f"{field}: expected a list of numbers, got one with gaps")
    return [part for part in parsed if part is not None]


def names(value: Any, field: str) -> list[str] | None:
    """A list of names, or its JSON text."""
    values = _listed(value, field, "a list of names")
    if values is None:
        return None
    found = [text(each, field) for each in values]
    if None in found:
        raise BadRow(f"{field}: expected a list of names, got one with gaps")
    return [name for name in found if name is not None]


def tiers(value: Any, field: str) -> list[list[str]] | None:
    """Lists of names, or their JSON text."""
    values = _listed(value, field, "lists of names")
    return None if values is None else [names(tier, field) or [] for tier in values]


def _listed(value: Any, field: str, what: str) -> list[Any] | None:
    """A list, or its JSON text; nothing where the cell is empty."""
    try:
        values = orjson.loads(value) if isinstance(value, str) and value else value
    except orjson.JSONDecodeError:
        values = False
    if values is None or values == "":
        return None
    if not isinstance(values, list | tuple):
        raise BadRow(f"{field}: expected {what}, got {shown(value)}")
    return list(values)


def _words(longest: int) -> Callable[[Any, str], str | None]:
    def parse(value: Any, field: str) -> str | None:
        spelt = written(value, field)
        if len(spelt) > longest or "\x00" in spelt:
            raise BadRow(f"{field}: expected at most {longest} characters and no NUL, got {shown(spelt)}")
        return spelt or None

    return parse


level, prose = _words(LONGEST_LEVEL), _words(LONGEST_TEXT)

PARSERS: dict[FeatureKind, Callable[[Any, str], Any]] = {
    "categorical": level,
    "numeric": number,
    "text": prose,
    "vector": vector,
}


def feature(value: Any, field: str, kind: FeatureKind) -> Any:
    """A context feature of the declared kind; None where it is missing."""
    return PARSERS[kind](value, field)


def is_number(value: Any) -> bool:
    """Whether an automatic choice of kind may call this cell numeric (an empty one may be)."""
    if isinstance(value, bool | list):
        return False
    try:
        number(value, "")
    except BadRow:
        return False
    return True


def shown(value: Any) -> str:
    """A value as a message quotes it: short."""
    spelt = repr(value)
    return spelt if len(spelt) <= 60 else f"{spelt[:56]}…{spelt[-1]}"
