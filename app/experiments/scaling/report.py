"""How the costs are shown: a table, JSON, a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.table import Table

from app.experiments.scaling.measure import Point, Size

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
    """A row a board; how much faster it was refitted than by the fewest workers and processes."""
    headings = (
        "votes",
        "items",
        "features",
        "workers",
        "processes",
        "votes/s",
        "refit s",
        "CPU s",
        "speed-up",
        "µs/vote",
        "peak GB",
        "live s",
        "reads/s",
    )
    table = Table(*headings, title="A board over HTTP, from its first vote to its readers")
    for point in points:
        size, each = point.size, point.refit / point.size.votes * 1e6
        place = [f"{size.votes:,}", *map(str, (size.items, size.features, size.workers, size.processes))]
        live = "-" if point.live is None else f"{point.live:.2f}"
        memory = f"{point.peak / GIGABYTE:.2f}"
        time = (f"{point.refit:.1f}", f"{point.cpu:.1f}", f"{_first(points, size).refit / point.refit:.2f}")
        table.add_row(*place, f"{point.ingest:,.0f}", *time, f"{each:.0f}", memory, live, f"{point.reads:,.0f}")
    return table


def _first(points: Sequence[Point], size: Size) -> Point:
    """The same board with the fewest workers, and processes of them."""
    board = size.votes, size.items, size.features
    same = [each for each in points if (each.size.votes, each.size.items, each.size.features) == board]
    return min(same, key=lambda each: (each.size.workers, each.size.processes))


def plot(points: Sequence[Point], path: Path) -> None:
    """Each cost against the number of votes, a line for every number of items, workers and processes."""
    figure = Figure(figsize=(4.0 * len(PANELS), 3.6), layout="constrained")
    for axes, (name, label) in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        _panel(axes, points, name, label)
    figure.savefig(path)


def _panel(axes: Axes, points: Sequence[Point], name: str, shown: str) -> None:
    for items, workers, processes in sorted({_crew(point.size) for point in points}):
        own = [point for point in points if _crew(point.size) == (items, workers, processes)]
        seen = [(point.size.votes, value) for point in own if (value := _value(point, name)) is not None]
        label = f"{items} items, {workers} workers of {processes} processes"
        axes.plot(*zip(*seen, strict=True), marker="o", label=label) if seen else None
    axes.set(xscale="log", yscale="log", xlabel="votes", ylabel=shown)
    if axes.lines:
        axes.legend(fontsize=7)


def _crew(size: Size) -> tuple[int, int, int]:
    return size.items, size.workers, size.processes


def _value(point: Point, name: str) -> float | None:
    return point.peak / GIGABYTE if name == "memory" else getattr(point, name)
