"""A ranking as the page shows it: text, positions on the common axis, words for every status."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from urllib.parse import urlsplit

from app.web import words
from app.web.axis import Axis, decimals, fewest_decimals, number, share
from app.web.choices import Choice, Menu, choices, query
from app.web.reader import Answer

REFERENCE = {"bt": 0.0, "borda": 0.5}
ELO_REFERENCE = 1000.0


@dataclass(frozen=True, slots=True)
class Tick:
    percent: float
    label: str
    reference: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One item: texts for the cells, percentages for the bar, raw numbers for telling what moved."""

    item: str
    title: str
    organisation: str
    url: str
    rank: str
    rank_interval: str
    score: str
    interval: str
    standard_error: str
    best: str
    votes: str
    effective: str
    unsupported: str
    status: str
    status_meaning: str
    low: float | None
    width: float | None
    point: float | None
    rank_raw: str
    score_raw: str
    low_raw: str
    high_raw: str


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """Everything that the template of a board reads."""

    heading: str
    page: str
    query: str
    json_url: str
    snapshot: str
    notice: words.Notice | None
    computed_at: str
    computed_words: str
    votes: str
    pending: str
    excluded: str
    flip: str
    meaning: str
    interval_meaning: str
    choices: tuple[Choice, ...]
    ticks: tuple[Tick, ...]
    rows: tuple[Row, ...]
    retired: tuple[Row, ...]


def leaderboard(answer: Answer, settled: Mapping[str, str], menu: Menu, *, title: str) -> Leaderboard:
    """Shape the answer of `GET …/rankings` for the page of its board."""
    axis = Axis.over(list(_drawn(answer["rankings"])))
    digits = decimals(_spread(answer["rankings"]))
    return Leaderboard(
        heading=title,
        page=f"/boards/{answer['board']}",
        query=query(settled),
        json_url=f"/v1/boards/{answer['board']}/rankings{query(settled)}",
        snapshot=str(answer["snapshot"] or ""),
        notice=words.BOARD_STATUS.get(answer["status"]),
        computed_at=str(answer["computed_at"] or ""),
        computed_words=moment_words(answer["computed_at"]),
        votes=f"{answer['votes']:,}",
        pending=f"{answer['votes_pending']:,}",
        excluded=_excluded(answer["votes_excluded"]),
        flip=_flip(answer),
        meaning=_meaning(settled, answer["pairs"]),
        interval_meaning=_interval_meaning(settled),
        choices=choices(settled, menu) if menu.combinations else (),
        ticks=_ticks(axis, settled),
        rows=tuple(_row(row, axis, digits) for row in answer["rankings"]),
        retired=tuple(_row(row, axis, digits) for row in answer["retired"]),
    )


def moment_words(moment: str | None) -> str:
    """`2026-11-30T12:00:00Z` as `2026-11-30 12:00:00 UTC`; a dash where nothing happened yet."""
    return f"{moment[:19].replace('T', ' ')} UTC" if moment else "–"


def _row(row: Answer, axis: Axis, digits: int) -> Row:
    low, high = row["interval"] or (None, None)
    left, right = _bar(row["interval"], axis)
    status, meaning = words.ITEM_STATUS.get(row["status"], ("" if row["status"] == "ok" else row["status"], ""))
    return Row(
        item=row["item"],
        title=row.get("title") or row["item"],
        organisation=row.get("organisation") or "",
        url=_safe(row.get("url")),
        rank=_whole(row["rank"]),
        rank_interval=_range(row["rank_interval"]),
        score=number(row["score"], digits),
        interval="no interval" if low is None else f"{number(low, digits)} to {number(high, digits)}",
        standard_error=number(row["standard_error"], digits),
        best=share(row["probability_best"]),
        votes=_whole(row["votes"]),
        effective=number(row["effective_votes"], 0),
        unsupported=share(row["unsupported"]),
        status=status,
        status_meaning=meaning,
        low=left,
        width=None if left is None or right is None else round(right - left, 2),
        point=None if row["score"] is None else axis.percent(row["score"]),
        rank_raw=_raw(row["rank"]),
        score_raw=_raw(row["score"]),
        low_raw=_raw(low),
        high_raw=_raw(high),
    )


def _bar(interval: Sequence[float] | None, axis: Axis) -> tuple[float | None, float | None]:
    return (axis.percent(interval[0]), axis.percent(interval[1])) if interval else (None, None)


def _drawn(rows: Sequence[Answer]) -> list[float]:
    ends = [end for row in rows for end in row["interval"] or ()]
    return ends + [row["score"] for row in rows if row["score"] is not None]


def _spread(rows: Sequence[Answer]) -> float:
    errors = [row["standard_error"] for row in rows if row["standard_error"]]
    return median(errors) if errors else 0.0


def _ticks(axis: Axis, settled: Mapping[str, str]) -> tuple[Tick, ...]:
    values = axis.ticks()
    digits = fewest_decimals(values)
    reference = ELO_REFERENCE if settled["scale"] == "elo" else REFERENCE.get(settled["estimand"])
    return tuple(Tick(axis.percent(v), number(v, digits), v == reference) for v in values)


def _meaning(settled: Mapping[str, str], pairs: str) -> str:
    elo = "Score: Elo points; 1,000 is the average item and 400 points are odds of ten to one."
    meaning = elo if settled["scale"] == "elo" else words.estimand(settled["estimand"])[1]
    return f"{meaning} {words.OBSERVED}" if pairs == "observed" else meaning


def _interval_meaning(settled: Mapping[str, str]) -> str:
    if settled["estimator"] in words.WITHOUT_INTERVAL:
        return "This estimator has no valid interval."
    meaning = words.INTERVAL_MEANING.get(settled["interval"], "").format(level=f"{float(settled['level']):.0%}")
    return f"Bars: {meaning}." if meaning else ""


def _excluded(reasons: Mapping[str, int]) -> str:
    named = [f"{count:,} {words.spoken(reason)}" for reason, count in sorted(reasons.items()) if count]
    return ", ".join(named) or "none"


def _flip(answer: Answer) -> str:
    """How many votes decide who leads; nothing where that is not known."""
    flip = answer["votes_to_flip"]
    if flip is None:
        return ""
    title = {row["item"]: row.get("title") or row["item"] for row in answer["rankings"]}
    rival = title.get(flip["challenger"], flip["challenger"])
    return f"{flip['votes']:,} ({flip['share']:.2%}), then {rival} leads"


def _range(interval: Sequence[int] | None) -> str:
    if not interval:
        return ""
    low, high = interval
    return f"{low}–{high}" if high > low else f"{low}"


def _whole(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _raw(value: float | None) -> str:
    return "" if value is None else repr(value)


def _safe(url: str | None) -> str:
    """Only web addresses become links; anything else could run code in the reader's page."""
    return url if url and urlsplit(url).scheme in ("http", "https") else ""
