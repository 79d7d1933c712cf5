"""The page of pairs: the heat map with how many items it shows."""

from __future__ import annotations

from dataclasses import dataclass

from app.web import words
from app.web.choices import Choice, Option
from app.web.heatmap import HeatMap, heat_map
from app.web.leaderboard import moment_words
from app.web.reader import Answer

SIZES = (20, 40, 80)


@dataclass(frozen=True, slots=True)
class PairsView:
    """Everything that the template of the pairs reads."""

    heading: str
    page: str
    query: str
    json_url: str
    snapshot: str
    notice: words.Notice | None
    computed_at: str
    computed_words: str
    choices: tuple[Choice, ...]
    map: HeatMap


def pairs_view(ranking: Answer, pairs: Answer, *, title: str, wanted: str) -> PairsView:
    """Shape the answers of `GET …/rankings` (for the order) and `GET …/pairs`.

    `wanted` is how many items to show: one of the sizes offered, anything else is the smallest.
    """
    titles = {row["item"]: row.get("title") or row["item"] for row in ranking["rankings"]}
    offered = [size for size in SIZES if size < len(titles)] + [max(len(titles), 1)]
    most = next((size for size in offered if str(size) == wanted), offered[0])
    address = f"/boards/{ranking['board']}/pairs"
    return PairsView(
        heading=title,
        page=address,
        query=f"?items={most}" if most != offered[0] else "",
        json_url=f"/v1{address}",
        snapshot=str(ranking["snapshot"] or ""),
        notice=words.BOARD_STATUS.get(ranking["status"]),
        computed_at=str(ranking["computed_at"] or ""),
        computed_words=moment_words(ranking["computed_at"]),
        choices=_sizes(offered, most),
        map=heat_map(pairs["pairs"], titles, most=most),
    )


def _sizes(offered: list[int], most: int) -> tuple[Choice, ...]:
    if len(offered) == 1:
        return ()
    options = [Option(str(size), f"Best {size}") for size in offered[:-1]]
    return (Choice("items", "Items", str(most), (*options, Option(str(offered[-1]), f"All {offered[-1]}"))),)
