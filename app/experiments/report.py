"""What an experiment shows: a table on the terminal, JSON, a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.table import Table

from app.experiments.coverage import LEVEL, Cell


def as_records(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """One mapping a cell, its verdict included."""
    return [{**asdict(cell), "passed": cell.passed} for cell in cells]


def coverage_table(cells: Sequence[Cell]) -> Table:
    """Coverage, width and error of each cell."""
    table = Table(title="Simultaneous 95% intervals; ratios against the one-step with the true nuisances")
    for heading in ("estimand", "n", "hits", "needed", "plug-in hits", "width", "error", "RMSE", "plug-in RMSE", ""):
        table.add_column(heading, justify="left" if heading == "estimand" else "right")
    for cell in cells:
        hits = (f"{cell.hits}/{cell.runs}", str(cell.hits_needed), f"{cell.plug_in_hits}/{cell.runs}")
        ratios = (f"{cell.width_ratio:.3f} ×", f"{cell.error_ratio:.3f} ×")
        errors = (f"{cell.rmse:.4f}", f"{cell.plug_in_rmse:.4f}")
        table.add_row(cell.estimand, str(cell.n), *hits, *ratios, *errors, "ok" if cell.passed else "FAILED")
    return table


def coverage_plot(cells: Sequence[Cell], path: Path) -> None:
    """Draw coverage of the debiased and plug-in intervals; the format follows the file's ending (svg, png, pdf)."""
    figure = Figure(figsize=(7, 3.5), layout="constrained")
    axes = figure.subplots()
    place = range(len(cells))
    axes.axhline(LEVEL, color="0.6", linewidth=1, linestyle="--", label="nominal")
    axes.plot(place, [cell.hits / cell.runs for cell in cells], "o", label="debiased")
    axes.plot(place, [cell.plug_in_hits / cell.runs for cell in cells], "x", label="plug-in")
    axes.set_xticks(place, [f"{cell.estimand}\nn = {cell.n}" for cell in cells])
    axes.set_ylim(0, 1.02)
    axes.set_ylabel("joint coverage")
    axes.legend(loc="lower left")
    figure.savefig(path)
