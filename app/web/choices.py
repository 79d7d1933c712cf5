"""The selectors of a board: only combinations that the snapshot holds, and the address that names one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import urlencode

from app.web import words

LEVELS = ("0.8", "0.9", "0.95", "0.99")
DEFAULTS = {
    "estimand": "bt",
    "estimator": "debiased",
    "pairs": "auto",
    "segment": "",
    "interval": "simultaneous",
    "level": "0.95",
    "scale": "natural",
}
LABELS = {
    "estimand": "Score",
    "estimator": "Estimator",
    "pairs": "Pairs",
    "segment": "Segment",
    "interval": "Interval",
    "level": "Confidence",
    "scale": "Scale",
}


class Combination(NamedTuple):
    """A ranking that exists: what is estimated, how, on which pairs, within which segment ('' is none)."""

    estimand: str
    estimator: str
    pairs: str
    segment: str


@dataclass(frozen=True, slots=True)
class Option:
    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Choice:
    """One selector with its options and the one in force."""

    name: str
    label: str
    selected: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Menu:
    """What a board offers: the rankings of its snapshot, the kinds of interval and the estimands with an Elo scale."""

    combinations: tuple[Combination, ...]
    intervals: tuple[str, ...]
    elo: frozenset[str]


def settle(wanted: Mapping[str, str], menu: Menu) -> dict[str, str]:
    """The wanted values where they exist together, the defaults elsewhere."""
    settled: dict[str, str] = {}
    for name in DEFAULTS:
        values = _values(name, settled, menu)
        settled[name] = _pick(wanted.get(name, ""), DEFAULTS[name], values)
    return settled


def choices(settled: Mapping[str, str], menu: Menu) -> tuple[Choice, ...]:
    """The selectors with more than one option, given what is in force."""
    offered = ((name, _values(name, settled, menu)) for name in DEFAULTS)
    return tuple(_choice(name, settled[name], values) for name, values in offered if len(values) > 1)


def query(settled: Mapping[str, str]) -> str:
    """The address's query, with the defaults left out."""
    kept = {name: value for name, value in settled.items() if value != DEFAULTS[name]}
    return f"?{urlencode(kept)}" if kept else ""


def _pick(wanted: str, default: str, values: Sequence[str]) -> str:
    if wanted in values:
        return wanted
    return default if default in values or not values else values[0]


def _values(name: str, settled: Mapping[str, str], menu: Menu) -> list[str]:
    matching = _matching(name, settled, menu.combinations)
    match name:
        case "interval":
            return [] if settled["estimator"] in words.WITHOUT_INTERVAL else list(menu.intervals)
        case "level":
            return [] if settled["estimator"] in words.WITHOUT_INTERVAL else list(LEVELS)
        case "scale":
            return ["natural", "elo"] if settled["estimand"] in menu.elo else ["natural"]
        case "pairs":
            named = _distinct(c.pairs for c in matching)
            return ["auto", *named] if len(named) > 1 else ["auto"]
        case _:
            return _distinct(getattr(c, name) for c in matching)


def _matching(name: str, settled: Mapping[str, str], combinations: Iterable[Combination]) -> list[Combination]:
    """The combinations that agree with every choice made before this one; automatic pairs agree with all."""
    earlier = [field for field in Combination._fields[: _rank(name)] if settled[field] != "auto"]
    return [c for c in combinations if all(getattr(c, field) == settled[field] for field in earlier)]


def _rank(name: str) -> int:
    return Combination._fields.index(name) if name in Combination._fields else len(Combination._fields)


def _distinct(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def _choice(name: str, selected: str, values: Sequence[str]) -> Choice:
    options = tuple(Option(value, _option_label(name, value)) for value in values)
    return Choice(name, LABELS[name], selected, options)


def _option_label(name: str, value: str) -> str:
    match name:
        case "estimand":
            return words.estimand(value)[0]
        case "estimator":
            return words.named(words.ESTIMATORS, value)
        case "pairs":
            return words.named(words.PAIRS, value)
        case "segment":
            return ": ".join(value.split(":", 1)) if value else "All votes"
        case "interval":
            return words.named(words.INTERVALS, value)
        case "level":
            return f"{float(value):.0%}"
        case _:
            return words.named(words.SCALES, value)
