"""What the coverage experiment shows: a table on the terminal, JSON, a plot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.table import Table

from app.experiments.coverage.bars import LEVEL
from app.experiments.coverage.cells import Cell

HEADINGS = ("setting", "board", "n", "rule", "estimand")
NUMBERS = ("hits", "needed", "plug-in hits", "width", "error", "RMSE", "plug-in RMSE", "")
DRIFT = ("from refit",)
KINDS = ((("covers",), "must cover", "C0"), (("fails", "errs"), "must fail", "C3"), (("shown",), "no bar", "C7"))
ROW_HEIGHT = 0.22


def as_records(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """One flat mapping a cell."""
    records = [asdict(cell) for cell in cells]
    return [{**record.pop("place"), **record} for record in records]


def coverage_table(cells: Sequence[Cell]) -> Table:
    """Coverage, width and error of each cell; where scores are live, how far from those of a refit."""
    lively = any(cell.drift is not None for cell in cells)
    table = Table(title="95% intervals; width and error are ratios against the one-step with the true nuisances")
    for heading in HEADINGS:
        table.add_column(heading, justify="right" if heading == "n" else "left", overflow="fold")
    for heading in (*NUMBERS, *DRIFT) if lively else NUMBERS:
        table.add_column(heading, justify="right", no_wrap=True)
    for _, of_case in groupby(cells, key=lambda cell: (cell.place.setting, cell.place.case, cell.place.n)):
        for cell in of_case:
            drift = "" if cell.drift is None else f"{cell.drift:.3f} RMSE"
            table.add_row(*_words(cell), *([drift] if lively else []))
        table.add_section()
    return table


def _words(cell: Cell) -> list[str]:
    place = cell.place
    needed = {"covers": f"≥ {cell.limit}", "fails": f"must fail: < {cell.limit}", "errs": "must err", "shown": ""}
    return [
        *(place.setting, place.case, str(place.n), place.rule, place.estimand),
        *(f"{cell.hits}/{cell.runs}", needed[cell.expected], f"{cell.plug_in_hits}/{cell.runs}"),
        *(f"{cell.width_ratio:.3f} ×", f"{cell.error_ratio:.3f} ×"),
        *(f"{cell.rmse:.4f}", f"{cell.plug_in_rmse:.4f}"),
        "ok" if cell.passed else "FAILED",
    ]


def coverage_plot(cells: Sequence[Cell], path: Path) -> None:
    """Draw coverage of the debiased and plug-in intervals; the format follows the file's ending (svg, png, pdf)."""
    figure = Figure(figsize=(8, 1.2 + ROW_HEIGHT * len(cells)), layout="constrained")
    axes = figure.subplots()
    axes.axvline(LEVEL, color="0.6", linewidth=1, linestyle="--", label="nominal")
    for expectations, label, colour in KINDS:
        rows = [row for row, cell in enumerate(cells) if cell.expected in expectations]
        if rows:
            axes.plot([cells[row].hits / cells[row].runs for row in rows], rows, "o", color=colour, label=label)
    axes.plot([cell.plug_in_hits / cell.runs for cell in cells], range(len(cells)), "x", color="0.5", label="plug-in")
    axes.set_yticks(range(len(cells)), [_label(cell) for cell in cells], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.02)
    axes.set_xlabel("joint coverage")
    axes.legend(loc="lower left", fontsize=7)
    figure.savefig(path)


def _label(cell: Cell) -> str:
    place = cell.place
    return f"{place.setting}, {place.case}, n = {place.n}, {place.rule}: {place.estimand}"
