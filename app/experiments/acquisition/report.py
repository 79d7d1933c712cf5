"""How policies are shown beside each other: a table with verdicts, JSON, a plot."""

from __future__ import annotations

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Group
from rich.table import Table

from app.experiments.acquisition.figures import Comparison, Quantity
from app.experiments.curve_report import claims
from app.experiments.curves import Spot


def as_record(found: Comparison) -> dict[str, Any]:
    """Quantities and verdicts."""
    quantities = [{**asdict(each.spot), **asdict(each)} for each in found.quantities]
    for each in quantities:
        del each["spot"]
        each["policy"], each["board"] = each.pop("estimator"), each.pop("level")
    verdicts = [asdict(verdict) for verdict in found.verdicts]
    return {"title": found.title, "runs": found.runs, "quantities": quantities, "verdicts": verdicts}


def tables(found: Comparison) -> Group:
    """Quantities with two standard errors and the ratio to the reference, then claims."""
    names = list(dict.fromkeys(each.name for each in found.quantities))
    shown = Table("board", "estimand", "policy", *names, title=f"{found.title}; {found.runs} runs")
    board = None
    for spot, each in groupby(found.quantities, key=lambda quantity: quantity.spot):
        if board not in (None, _board(spot)):
            shown.add_section()
        board = _board(spot)
        cells = {quantity.name: _words(quantity) for quantity in each}
        shown.add_row(*board, spot.estimator, *(cells.get(name, "") for name in names))
    return Group(shown, claims(found.verdicts, "What this is to show; ratios are of means on the same draws"))


def _board(spot: Spot) -> tuple[str, str]:
    return spot.level, spot.estimand


def _words(quantity: Quantity) -> str:
    own = f"{quantity.mean:.3g} ± {quantity.two_errors:.1g}"
    return own if quantity.ratio is None else f"{own}  ({quantity.ratio:.3f} ± {quantity.ratio_errors:.3f} ×)"


def draw(found: Comparison, path: Path) -> None:
    """The first quantity's ratio to the reference, a panel a board; the format follows the file's ending."""
    first = [each for each in found.quantities if each.name == found.quantities[0].name and each.ratio is not None]
    boards = list(dict.fromkeys(each.spot.level for each in first))
    figure = Figure(figsize=(1.0 + 3.4 * len(boards), 4.2), layout="constrained")
    for axes, board in zip(figure.subplots(1, len(boards), squeeze=False)[0], boards, strict=True):
        _panel(axes, [each for each in first if each.spot.level == board])
        axes.set_title(board, fontsize=8)
        axes.set_ylabel(f"{first[0].name} ÷ {found.reference}'s", fontsize=8)
    figure.suptitle(found.title, fontsize=9)
    figure.savefig(path)


def _panel(axes: Axes, quantities: list[Quantity]) -> None:
    axes.axhline(1.0, color="0.6", linewidth=1, linestyle="--")
    policies = list(dict.fromkeys(each.spot.estimator for each in quantities))
    for estimand in dict.fromkeys(each.spot.estimand for each in quantities):
        own = [each for each in quantities if each.spot.estimand == estimand]
        at = [policies.index(each.spot.estimator) for each in own]
        spread = [each.ratio_errors or 0.0 for each in own]
        axes.errorbar(at, [each.ratio or 0.0 for each in own], spread, fmt="o", capsize=2, label=estimand)
    axes.set_xticks(range(len(policies)), policies, rotation=40, ha="right", fontsize=7)
    axes.legend(fontsize=7)
