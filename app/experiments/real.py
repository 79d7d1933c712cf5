"""Rankings of real votes: plug-in against debiased scores with intervals (DMLRank, Fig. 3). There is no known truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Group
from rich.table import Table

from app.experiments.boards import cross_fit
from app.experiments.coverage.bars import LEVEL
from app.experiments.coverage.case import ESTIMANDS
from app.experiments.votes import Read
from app.formats.plan import Request
from app.formats.registry import FORMATS
from app.stats.debias import Scores, estimate
from app.stats.inference import bands, rank_intervals, ranks

MTBENCH = Request(FORMATS["mtbench"], where=(("source", "human"),))
LLMFAO = Request(
    FORMATS["map"],
    {
        "context": "prompt_id",
        "left": "model_left",
        "right": "model_right",
        "outcome": "winner",
        "voter": "worker_id",
        "feature.type": "prompt_type",
    },
    where=(("source", "crowd"),),
)


@dataclass(frozen=True)
class Standing:
    """An item's place.

    Parameters
    ----------
    item : its name.
    plug_in, debiased : scores.
    lower, upper : simultaneous 95% interval of the debiased score.
    rank, best_rank, worst_rank : of the debiased score, and what the differences leave open.
    """

    item: str
    plug_in: float
    debiased: float
    lower: float
    upper: float
    rank: int
    best_rank: int
    worst_rank: int


@dataclass(frozen=True)
class Ranking:
    """One estimand on one file.

    Parameters
    ----------
    source : the file's name.
    estimand : the score.
    pairs : all pairs, or those with votes where too much would rest on others.
    votes : how many.
    standings : best first.
    """

    source: str
    estimand: str
    pairs: str
    votes: int
    standings: tuple[Standing, ...]


def rankings(source: str, read: Read, learner: str) -> list[Ranking]:
    """Borda, Bradley-Terry and rank centrality of a file's votes."""
    found = estimate(read.board.sample, cross_fit(read.board, learner), ESTIMANDS, clustering=read.board.clustering)
    return [
        Ranking(source, name, scores.auto, len(read.board.sample.votes), _standings(read.items, scores))
        for name, scores in found.items()
    ]


def _standings(items: Sequence[str], scores: Scores) -> tuple[Standing, ...]:
    result = scores.of(scores.auto)
    value, band = result.estimate.value, bands(result.estimate, level=LEVEL)
    best, worst = rank_intervals(result.estimate, level=LEVEL)
    names = [items[item] for item in result.items]
    columns = (
        *(each.tolist() for each in (result.plug_in, value, band.lower, band.upper)),
        *(each.tolist() for each in (ranks(value), best, worst)),
    )
    standings = [Standing(*row) for row in zip(names, *columns, strict=True)]
    return tuple(standings[place] for place in np.argsort(-value, kind="stable"))


def as_records(found: Sequence[Ranking]) -> list[dict[str, Any]]:
    """One mapping a ranking."""
    return [asdict(ranking) for ranking in found]


def tables(found: Sequence[Ranking]) -> Group:
    """A table a ranking."""
    return Group(*(_table(ranking) for ranking in found))


def _table(ranking: Ranking) -> Table:
    title = f"{ranking.source}: {ranking.estimand}, pairs={ranking.pairs}, {ranking.votes:,} votes"
    table = Table("rank", "item", "plug-in", "debiased", "95% interval", "ranks", title=title)
    for each in ranking.standings:
        numbers = f"{each.plug_in:.4f}", f"{each.debiased:.4f}", f"{each.lower:.4f} to {each.upper:.4f}"
        table.add_row(str(each.rank), each.item, *numbers, f"{each.best_rank} to {each.worst_rank}")
    return table


def draw(found: Sequence[Ranking], path: Path) -> None:
    """A row of panels a file, a panel an estimand."""
    sources = list(dict.fromkeys(ranking.source for ranking in found))
    most = [max(len(each.standings) for each in found if each.source == source) for source in sources]
    heights = [1.0 + 0.16 * size for size in most]
    figure = Figure(figsize=(12, sum(heights)), layout="constrained")
    panels = figure.subplots(len(sources), len(ESTIMANDS), squeeze=False, height_ratios=heights)
    for ranking, axes in zip(found, panels.ravel(), strict=True):
        _panel(axes, ranking)
    panels[0, 0].legend(fontsize=7)
    figure.savefig(path)


def _panel(axes: Axes, ranking: Ranking) -> None:
    value = np.array([each.debiased for each in ranking.standings])
    ends = np.array([[each.lower, each.upper] for each in ranking.standings]).T
    place = range(len(ranking.standings))
    axes.errorbar(value, place, xerr=np.abs(ends - value), fmt="o", markersize=3, capsize=2, label="debiased")
    axes.plot([each.plug_in for each in ranking.standings], place, "x", markersize=4, label="plug-in")
    axes.set_yticks(place, [each.item for each in ranking.standings], fontsize=6)
    axes.invert_yaxis()
    axes.set_title(f"{ranking.source}: {ranking.estimand}", fontsize=9)
