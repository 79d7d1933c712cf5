"""The page of a ranking over time: a line and a band for each item, all on one axis, and what moved beyond noise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from statistics import median

from app.web import words
from app.web.axis import decimals, number
from app.web.choices import Choice, Menu, choices, query
from app.web.leaderboard import moment_words
from app.web.reader import Answer

WIDTH, HEIGHT = 1000.0, 100.0
"""Of a chart, in units of its own: it is stretched to its cell, its lines are not."""
VERDICTS: Mapping[bool | None, str] = {
    True: "Beyond noise",
    False: "Within noise",
    None: "–",
}


@dataclass(frozen=True, slots=True)
class Trend:
    """One item: texts for the cells, and the points of lines and bands, a piece for each run without a gap."""

    item: str
    title: str
    rank: str
    score: str
    change: str
    verdict: str
    beyond: bool
    lines: tuple[str, ...]
    bands: tuple[str, ...]
    dots: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class HistoryView:
    """Everything that the template reads."""

    heading: str
    page: str
    query: str
    json_url: str
    snapshot: str
    notice: words.Notice | None
    choices: tuple[Choice, ...]
    since: str
    until: str
    steps: str
    trends: tuple[Trend, ...]


def history_view(ranking: Answer, answer: Answer, settled: Mapping[str, str], menu: Menu, *, title: str) -> HistoryView:
    """Shape the answers of `GET …/rankings` (for titles) and `GET …/rankings/history`."""
    titles = {row["item"]: row.get("title") or row["item"] for row in (*ranking["rankings"], *ranking["retired"])}
    moments = [point["computed_at"] for point in answer["points"]]
    scale = _Scale.over(moments, answer["items"])
    return HistoryView(
        heading=title,
        page=f"/boards/{answer['board']}/history",
        query=query(settled),
        json_url=f"/v1/boards/{answer['board']}/rankings/history{query(settled)}",
        snapshot=str(ranking["snapshot"] or ""),
        notice=words.BOARD_STATUS.get(ranking["status"]),
        choices=tuple(each for each in choices(settled, menu) if each.name != "scale") if menu.combinations else (),
        since=moment_words(moments[0] if moments else None),
        until=moment_words(moments[-1] if moments else None),
        steps=f"{len(moments)} of {answer['snapshots']}",
        trends=tuple(_trend(row, titles, scale) for row in answer["items"]) if moments else (),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    """Where moments and scores stand in a chart."""

    times: tuple[float, ...]
    low: float
    high: float
    digits: int

    @classmethod
    def over(cls, moments: Sequence[str], rows: Sequence[Answer]) -> _Scale:
        times = [datetime.fromisoformat(moment).timestamp() for moment in moments]
        length = times[-1] - times[0] if len(times) > 1 else 0.0
        shares = [(time - times[0]) / length if length else 0.5 for time in times]
        ends = [end for row in rows for interval in row["interval"] for end in interval or ()]
        values = ends + [score for row in rows for score in row["score"] if score is not None]
        errors = [error for row in rows for error in row["standard_error"] if error]
        low, high = min(values, default=0.0), max(values, default=1.0)
        spread = high - low if high > low else 1.0
        digits = decimals(median(errors) if errors else 0.0)
        return cls(tuple(round(WIDTH * share, 1) for share in shares), low, low + spread, digits)

    def height(self, value: float) -> float:
        """From the top."""
        return round(HEIGHT * (0.04 + 0.92 * (self.high - value) / (self.high - self.low)), 2)


def _trend(row: Answer, titles: Mapping[str, str], scale: _Scale) -> Trend:
    known = [at for at, score in enumerate(row["score"]) if score is not None]
    pieces = list(_runs(known))
    beyond = row["changed_beyond_noise"]
    return Trend(
        item=row["item"],
        title=titles.get(row["item"], row["item"]),
        rank=_to([row["rank"][at] for at in (known[0], known[-1])], 0),
        score=_to([row["score"][at] for at in (known[0], known[-1])], scale.digits),
        change=_signed(row["score"][known[-1]] - row["score"][known[0]], scale.digits),
        verdict=VERDICTS[beyond],
        beyond=bool(beyond),
        lines=tuple(_points(piece, row["score"], scale) for piece in pieces),
        bands=tuple(_band(piece, row["interval"], scale) for piece in pieces if row["interval"][piece[0]]),
        dots=tuple((scale.times[at], scale.height(row["score"][at])) for at in {known[0], known[-1]}),
    )


def _runs(known: Sequence[int]) -> Iterator[list[int]]:
    """Runs of neighbouring points."""
    for _, run in groupby(enumerate(known), key=lambda each: each[1] - each[0]):
        yield [at for _, at in run]


def _points(piece: Sequence[int], values: Sequence[float], scale: _Scale) -> str:
    return " ".join(f"{scale.times[at]},{scale.height(values[at])}" for at in piece)


def _band(piece: Sequence[int], intervals: Sequence[Sequence[float]], scale: _Scale) -> str:
    """Along the upper ends, and back along the lower ones."""
    low, high = ({at: intervals[at][end] for at in piece} for end in (0, 1))
    there = [f"{scale.times[at]},{scale.height(high[at])}" for at in piece]
    back = [f"{scale.times[at]},{scale.height(low[at])}" for at in reversed(piece)]
    return " ".join((*there, *back))


def _to(ends: Sequence[float], digits: int) -> str:
    first, last = (number(end, digits) for end in ends)
    return last if first == last else f"{first} → {last}"


def _signed(value: float, digits: int) -> str:
    text = number(value, digits)
    return f"+{text}" if value > 0 and text.strip("0.,") else text
