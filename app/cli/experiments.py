"""`orthorank experiment …`: re-run the evidence."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import Progress

from app.experiments.coverage import Cell
from app.experiments.coverage import coverage as measure_coverage
from app.experiments.report import as_records, coverage_plot, coverage_table

experiments = typer.Typer(no_args_is_help=True, help="Re-run the experiments behind the statistics; seeds are fixed.")
commands = typer.Typer()
commands.add_typer(experiments, name="experiment")
PLOTS = (".svg", ".png", ".pdf")


@experiments.callback()
def group() -> None:
    """Keep `experiment` a group of commands."""


def _plot_path(path: Path | None) -> Path | None:
    if path is not None and path.suffix not in PLOTS:
        raise typer.BadParameter(f"{path} ends in {path.suffix or 'nothing'!r}; expected one of {', '.join(PLOTS)}")
    return path


@experiments.command()
def coverage(
    runs: Annotated[int, typer.Option(min=1, help="simulated boards per size")] = 400,
    n: Annotated[list[int] | None, typer.Option(min=20, help="contexts of a board; repeatable [default: 1000]")] = None,
    *,
    processes: Annotated[int, typer.Option(min=1, help="processes at once")] = os.cpu_count() or 1,
    json: Annotated[bool, typer.Option("--json", help="print JSON instead of a table")] = False,
    plot: Annotated[Path | None, typer.Option(callback=_plot_path, help="also draw to this svg, png or pdf")] = None,
) -> None:
    """Joint coverage, width and error of debiased Borda, Bradley-Terry and rank centrality on boards of known truth.

    Boards have 5 items, 3 outcomes, 5 covariates, cyclic pair terms and propensities that depend on the context.
    Exit status 1 where a cell misses its bar (hits, width at most 1.10 times and error at most 1.15 times the ideal).
    """
    sizes = n or [1000]
    cells: list[Cell] = []
    with Progress(console=Console(stderr=True)) as progress:
        bar = progress.add_task("boards", total=runs * len(sizes))
        for size in sizes:
            cells += measure_coverage(size, runs, processes=processes, on_done=lambda: progress.advance(bar))
    if json:
        typer.echo(orjson.dumps(as_records(cells), option=orjson.OPT_INDENT_2))
    else:
        Console().print(coverage_table(cells))
    if plot is not None:
        coverage_plot(cells, plot)
    raise typer.Exit(not all(cell.passed for cell in cells))
