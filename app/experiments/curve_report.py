"""How curves are shown: a table with verdicts, JSON, a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Group
from rich.table import Table

from app.experiments.curves import Curves, Verdict


def as_record(curves: Curves) -> dict[str, Any]:
    """Points and verdicts."""
    points = [{**asdict(point.spot), **asdict(point)} for point in curves.points]
    for point in points:
        del point["spot"]
    return {"title": curves.title, "points": points, "verdicts": [asdict(verdict) for verdict in curves.verdicts]}


def tables(curves: Curves) -> Group:
    """Errors, then claims."""
    errors = Table("estimand", "estimator", curves.axis, "RMSE", "hits", title=curves.title)
    for point in curves.points:
        hits = "" if point.hits is None else f"{point.hits}/{point.runs}"
        place = point.spot.estimand, point.spot.estimator, point.spot.level
        errors.add_row(*place, f"{point.rmse:.4f} ± {point.two_errors:.4f}", hits)
    return Group(
        errors, claims(curves.verdicts, "Ratios of mean squared errors on the same draws, ± 2 standard errors")
    )


def claims(verdicts: Sequence[Verdict], title: str) -> Table:
    """What was put to the test, and how it went."""
    told = Table("claim", "found", "", title=title)
    for verdict in verdicts:
        told.add_row(verdict.claim, verdict.found, "ok" if verdict.passed else "FAILED")
    return told


def plot(curves: Curves, path: Path) -> None:
    """Error against level, a panel an estimand; the format follows the file's ending (svg, png, pdf)."""
    estimands = list(dict.fromkeys(point.spot.estimand for point in curves.points))
    figure = Figure(figsize=(4.5 * len(estimands), 3.8), layout="constrained")
    for axes, estimand in zip(figure.subplots(1, len(estimands), squeeze=False)[0], estimands, strict=True):
        _panel(axes, curves, estimand)
    figure.suptitle(curves.title, fontsize=9)
    figure.savefig(path)


def _panel(axes: Axes, curves: Curves, estimand: str) -> None:
    points = [point for point in curves.points if point.spot.estimand == estimand]
    levels = list(dict.fromkeys(point.spot.level for point in points))
    for estimator in dict.fromkeys(point.spot.estimator for point in points):
        own = [point for point in points if point.spot.estimator == estimator]
        at = [levels.index(point.spot.level) for point in own]
        spread = [point.two_errors for point in own]
        axes.errorbar(at, [point.rmse for point in own], spread, marker="o", capsize=2, label=estimator)
    axes.set_xticks(range(len(levels)), levels, rotation=30, fontsize=7)
    axes.set_ylim(bottom=0)
    axes.set_title(estimand, fontsize=9)
    axes.set_ylabel("root mean squared error")
    axes.legend(fontsize=7)
