"""How the costs are shown: a table, JSON, a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from app.experiments.scaling.measure import Point

GIGABYTE = 1 << 30
PANELS = (
    ("ingest", "votes stored a second"),
    ("refit", "seconds of a refit"),
    ("memory", "GB of a refit, at most"),
    ("live", "seconds until a vote is live"),
    ("reads", "rankings read a second"),
)


def as_record(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Each point with its size."""
    return [
        {**asdict(point.size), **{name: value for name, value in asdict(point).items() if name != "size"}}
        for point in points
    ]


def tables(points: Sequence[Point]) -> Table:
    """A row a board."""
    headings = (
        "votes",
        "items",
        "features",
        "processes",
        "votes/s",
        "refit s",
        "µs/vote",
        "peak GB",
        "live s",
        "reads/s",
    )
    table = Table(*headings, title="A board over HTTP, from its first vote to its readers")
    for point in points:
        size, each = point.size, point.refit / point.size.votes * 1e6
        place = (f"{size.votes:,}", str(size.items), str(size.features), str(size.processes))
        live = "-" if point.live is None else f"{point.live:.2f}"
        memory = f"{point.peak / GIGABYTE:.2f}"
        table.add_row(
            *place, f"{point.ingest:,.0f}", f"{point.refit:.1f}", f"{each:.0f}", memory, live, f"{point.reads:,.0f}"
        )
    return table


def plot(points: Sequence[Point], path: Path) -> None:
    """Each cost against the number of votes, a line for every number of items and processes."""
    figure = Figure(figsize=(4.0 * len(PANELS), 3.6), layout="constrained")
    for axes, (name, label) in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        _panel(axes, points, name, label)
    figure.savefig(path)


def _panel(axes: Axes, points: Sequence[Point], name: str, label: str) -> None:
    for items, processes in sorted({(point.size.items, point.size.processes) for point in points}):
        own = [point for point in points if (point.size.items, point.size.processes) == (items, processes)]
        seen = [(point.size.votes, value) for point in own if (value := _value(point, name)) is not None]
        axes.plot(*zip(*seen, strict=True), marker="o", label=f"{items} items, {processes} processes") if seen else None
    axes.set(xscale="log", yscale="log", xlabel="votes", ylabel=label)
    if axes.lines:
        axes.legend(fontsize=7)


def _value(point: Point, name: str) -> float | None:
    return point.peak / GIGABYTE if name == "memory" else getattr(point, name)
