"""The page of equilibria: the mixture of the board and of each segment as a heat map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from app.web import words
from app.web.axis import number, share
from app.web.heatmap import SHADES, Cell, HeatMap, Line
from app.web.leaderboard import moment_words
from app.web.reader import Answer

LEAST = 1e-3
"""Items with no larger share anywhere are left out."""
WHOLE = "Whole board"


@dataclass(frozen=True, slots=True)
class EquilibriumView:
    """Everything that the template reads."""

    heading: str
    query: str
    json_url: str
    snapshot: str
    notice: words.Notice | None
    computed_at: str
    computed_words: str
    facts: tuple[tuple[str, str], ...]
    map: HeatMap


def equilibrium_view(ranking: Answer, answer: Answer, *, title: str) -> EquilibriumView:
    """Shape the answers of `GET …/rankings` (for titles) and `GET …/equilibrium/segments`."""
    titles = {row["item"]: row.get("title") or row["item"] for row in ranking["rankings"]}
    overall, asked = answer["overall"], answer["settings"]
    return EquilibriumView(
        heading=title,
        query="",
        json_url=f"/v1/boards/{answer['board']}/equilibrium",
        snapshot=str(answer["snapshot"] or ""),
        notice=_notice(answer["status"]),
        computed_at=str(answer["computed_at"] or ""),
        computed_words=moment_words(answer["computed_at"]),
        facts=(
            ("Best rival’s gain", number(overall["exploitability"], 3)),
            ("Regularised by", f"{asked['regulariser']}, λ = {asked['lambda']:g}"),
        ),
        map=mixtures(answer, titles),
    )


def _notice(status: str) -> words.Notice | None:
    return words.MIXTURE_STATUS.get(status) or words.BOARD_STATUS.get(status)


def mixtures(answer: Answer, titles: Mapping[str, str]) -> HeatMap:
    """The whole board's mixture and those of its segments; items in none of them are left out."""
    rows = [row for row in (answer["overall"], *answer["segments"]) if row["distribution"] is not None]
    most = {item: max((row["distribution"].get(item, 0.0) for row in rows), default=0.0) for item in answer["items"]}
    first = rows[0]["distribution"] if rows else {}
    shown = sorted((item for item in most if most[item] > LEAST), key=lambda item: -first.get(item, 0.0))
    lines = tuple(Line(_name(row), tuple(_cell(row, item, titles) for item in shown)) for row in rows)
    return HeatMap(tuple(titles.get(item, item) for item in shown), lines, len(most) - len(shown) if rows else 0)


def _name(row: Answer) -> str:
    return str(row["segment"] or WHOLE)


def _cell(row: Answer, item: str, titles: Mapping[str, str]) -> Cell:
    part, title = row["distribution"].get(item), titles.get(item, item)
    if part is None:
        return Cell("", "none", f"{_name(row)}: {title} is linked by no votes", _behind(row))
    strength = ceil(SHADES * part) if part > LEAST else 0
    return Cell(
        text=f"{100 * part:.0f}" if strength else "",
        shade=f"h{strength}" if strength else "",
        says=f"{_name(row)}: {title} has a share of {share(part if strength else 0.0)}",
        counts=_behind(row),
    )


def _behind(row: Answer) -> str:
    apart = row.get("distance")
    away = "" if apart is None else f" {share(apart)} of it would have to move to be the whole board’s."
    return f"{row['votes']:,} votes; the best single rival gains {number(row['exploitability'], 3)}.{away}"
