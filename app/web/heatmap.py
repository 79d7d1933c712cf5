"""The pairs of a board as a heat map: colour by who wins, words and raw counts for every cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.web import words
from app.web.axis import share
from app.web.reader import Answer

SHADES = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """How the row's item does against the column's: number, shade, a sentence and the counts behind it."""

    text: str
    shade: str
    says: str
    counts: str


@dataclass(frozen=True, slots=True)
class Line:
    title: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Lines and columns in the order given; `hidden` counts the items left out."""

    titles: tuple[str, ...]
    lines: tuple[Line, ...]
    hidden: int


SELF = Cell("", "self", "", "")


def heat_map(pairs: Sequence[Answer], titles: Mapping[str, str], *, most: int) -> HeatMap:
    """Draw the first `most` items of `titles` (item → title, best first).

    `pairs` are those of `GET …/pairs`: one entry for each unordered pair, its score the share won by `first`.
    """
    shown = list(titles)[:most]
    found = {(p["first"], p["second"]): p for p in pairs}
    lines = tuple(Line(titles[a], tuple(_cell(found, titles, a, b) for b in shown)) for a in shown)
    return HeatMap(tuple(titles[item] for item in shown), lines, len(titles) - len(shown))


def _cell(found: Mapping[tuple[str, str], Answer], titles: Mapping[str, str], a: str, b: str) -> Cell:
    if a == b:
        return SELF
    if (pair := found.get((a, b))) is not None:
        score, interval = pair["score"], pair["interval"]
    elif (pair := found.get((b, a))) is not None:
        score, interval = _turned(pair)
    else:
        score, interval = None, None
    return Cell(
        text="" if score is None else f"{100 * _within(score):.0f}",
        shade=shade(score),
        says=_sentence(titles[a], titles[b], score, interval),
        counts=_counts(pair, titles),
    )


def shade(score: float | None) -> str:
    """`none`, `l1` … `l5` below one half, `h1` … `h5` above, '' at it."""
    if score is None:
        return "none"
    strength = min(SHADES, round(abs(_within(score) - 0.5) * 2 * SHADES + 0.5))
    return "" if abs(score - 0.5) < 0.01 else f"{'h' if score > 0.5 else 'l'}{strength}"


def _turned(pair: Answer) -> tuple[float | None, list[float] | None]:
    """The pair as its second item sees it."""
    score, interval = pair["score"], pair["interval"]
    return (
        None if score is None else 1 - score,
        None if interval is None else [1 - interval[1], 1 - interval[0]],
    )


def _sentence(first: str, second: str, score: float | None, interval: Sequence[float] | None) -> str:
    if score is None:
        return f"{first} against {second}: no votes"
    between = f" ({share(interval[0])} to {share(interval[1])})" if interval else ""
    beyond = "" if score == _within(score) else "; an estimate beyond what a share can be, from few votes"
    return f"{first} against {second}: wins a share of {share(score)}{between}{beyond}"


def _within(score: float) -> float:
    """Debiased shares of few votes may leave [0, 1]; drawn, they are at its end."""
    return min(1.0, max(0.0, score))


def _counts(pair: Answer | None, titles: Mapping[str, str]) -> str:
    if pair is None:
        return "No votes on this pair."
    orders = ((pair["first"], "first_left"), (pair["second"], "second_left"))
    return " ".join(f"{titles[item]} on the left: {_tally(pair['counts'][order])}." for item, order in orders)


def _tally(counts: Mapping[str, int]) -> str:
    named = ", ".join(f"{count:,} {words.spoken(outcome)}" for outcome, count in counts.items() if count)
    return named or "no votes"
