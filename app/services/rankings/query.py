"""What a reader may ask of a board's ranking, checked against the board's configuration."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Literal, get_args

from app.domain.boards import BoardConfig
from app.domain.errors import DomainError, Invalid, Missing
from app.domain.estimands import BUILT_IN
from app.services.refit.modelled import CONTEXTUAL, RESTRICTED
from app.stats.inference import IntervalKind

Estimator = Literal["debiased", "plugin", "restricted", "classical", "contextual-bt"]
Pairs = Literal["auto", "all", "observed"]
Scale = Literal["natural", "elo"]

ESTIMATORS = get_args(Estimator)
LIVE_ESTIMATORS = ("debiased", "plugin")
"""Estimators that are sums over rows."""
PAIRS = get_args(Pairs)
SCALES = get_args(Scale)
INTERVALS = get_args(IntervalKind)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingQuery:
    """One ranking of a board; the contract's defaults.

    Parameters
    ----------
    segment : `name:level`, or a pair `name:level,name:level` in either order, or None for the whole board.
    anchor : an item that the others are measured from.
    since, until : rows offered in [since, until) only.
    """

    estimand: str = "bt"
    estimator: str = "debiased"
    pairs: str = "auto"
    segment: str | None = None
    interval: str = "simultaneous"
    level: float = 0.95
    scale: str = "natural"
    anchor: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What tells two queries apart."""
        return astuple(self)

    @property
    def windowed(self) -> bool:
        return self.since is not None or self.until is not None

    @property
    def is_live(self) -> bool:
        """Whether votes since the last refit are in the answer."""
        return self.estimator in LIVE_ESTIMATORS and not self.windowed

    @property
    def whole(self) -> bool:
        """Whether all rows are asked for."""
        return self.segment is None and not self.windowed


def check(query: RankingQuery, config: BoardConfig) -> None:
    """Refuse a combination that has no answer, naming the parameter."""
    kinds = kinds_of(config)
    one_of("estimand", query.estimand, tuple(kinds))
    one_of("estimator", query.estimator, ESTIMATORS)
    one_of("pairs", query.pairs, PAIRS)
    one_of("interval", query.interval, INTERVALS)
    one_of("scale", query.scale, SCALES)
    if not 0.0 < query.level < 1.0:
        raise refusal("level", "the level lies strictly between 0 and 1", "a number in (0, 1)", query.level)
    if query.estimator == "classical" and query.estimand != "bt":
        detail = f"the classical estimator exists for bt, not for {query.estimand}"
        raise refusal("estimator", detail, "estimand=bt", query.estimand)
    if query.estimator in (RESTRICTED, CONTEXTUAL) and kinds[query.estimand] != "bt":
        detail = f"the estimator {query.estimator} exists for Bradley-Terry scores, not for {query.estimand}"
        raise refusal("estimator", detail, [name for name, kind in kinds.items() if kind == "bt"], query.estimand)
    if query.pairs == "observed" and kinds[query.estimand] not in BUILT_IN:
        detail = f"{query.estimand} is a function of the shares of all pairs: it has no meaning on some of them"
        raise refusal("pairs", detail, ["auto", "all"], query.pairs)
    if query.scale == "elo" and kinds[query.estimand] != "bt":
        raise refusal("scale", "only Bradley-Terry scores have an Elo scale", "natural", query.scale)
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise refusal("from", "the window ends before it begins", "from < to", query.since.isoformat())
    check_segment(query.segment, config)


def check_segment(segment: str | None, config: BoardConfig) -> None:
    """Refuse what can be no segment of the board, whatever levels its votes have: which ones only a refit knows."""
    if segment is not None:
        name, _, level = segment.partition(":")
        if name not in config.segments or not level:
            raise unknown_segment(segment, [f"{name}:…" for name in config.segments])


def kinds_of(config: BoardConfig) -> dict[str, str]:
    """The kind of every estimand that the board serves."""
    return {name: name for name in BUILT_IN} | {each.name: each.kind for each in config.named_estimands}


def unknown_segment(segment: str, expected: list[str]) -> DomainError:
    """No vote was ever given there."""
    detail = f"the board has no segment {segment!r}"
    return Missing("unknown-segment", detail, path="segment", expected=expected, got=segment)


def unknown_anchor(anchor: str, expected: list[str]) -> DomainError:
    """An anchor without a score."""
    detail = f"{anchor!r} has no score to measure from: it is unknown, retired, or not linked to the others by votes"
    return Invalid("bad-anchor", detail, path="anchor", expected=expected, got=anchor)


def one_of(path: str, got: str, allowed: tuple[str, ...]) -> None:
    """Refuse a value that is not among the allowed ones."""
    if got not in allowed:
        raise refusal(path, f"no {path} is called {got!r} here", list(allowed), got)


def refusal(path: str, detail: str, expected: object, got: object) -> DomainError:
    """A parameter that has no answer."""
    return Invalid(f"bad-{path}", detail, path=path, expected=expected, got=got)
