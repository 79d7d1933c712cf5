"""`orthorank experiment coverage`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.experiments.output import CORES, AsJson, Learner, Plot, Processes, Report, finish, progress
from app.experiments.coverage.case import Case
from app.experiments.coverage.cells import Cell
from app.experiments.coverage.report import as_records, coverage_plot, coverage_table
from app.experiments.coverage.run import coverage as measure_coverage
from app.experiments.coverage.scored import on_scores
from app.experiments.coverage.settings import ALL, SETTINGS, cases
from app.experiments.scores import read_scores
from app.formats.rows import BrokenFile, UnusableFile

REPORT = Report[list[Cell]](coverage_table, as_records, coverage_plot)


def _known(names: list[str] | None) -> list[str] | None:
    for name in names or []:
        if name not in (*SETTINGS, ALL):
            raise typer.BadParameter(f"{name!r} is none of {', '.join(SETTINGS)}, {ALL}")
    return names


Settings = Annotated[
    list[str] | None,
    typer.Option(
        callback=_known, help=f"{', '.join(SETTINGS)} or {ALL}; repeatable [default: table1]", show_default=False
    ),
]
Sizes = Annotated[
    list[int] | None,
    typer.Option(min=20, help="contexts of table1's boards; repeatable [default: 1000, 2000, 3000]"),
]
Scores = Annotated[
    Path | None,
    typer.Option(
        help="CSV of query_id, task and score:NAME columns: instead of a setting, votes on these scores, both learners"
    ),
]
Features = Annotated[Path | None, typer.Option(help="CSV of query_id and numeric features, for --scores")]


def coverage(
    runs: Annotated[int, typer.Option(min=1, help="simulated boards of each kind")] = 400,
    setting: Settings = None,
    n: Sizes = None,
    *,
    scores: Scores = None,
    features: Features = None,
    learner: Learner = "davidson",
    processes: Processes = CORES,
    json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Joint coverage, width and error of debiased Borda, Bradley-Terry and rank centrality on boards of known truth.

    Each setting is a kind of board on which a rule of the estimator matters, read with the rule and, as a control,
    without it. Exit status 1 where a cell misses its bar: rules must cover (356 hits of 400), with a width of at most
    1.10 times and an error of at most 1.15 times those of the one-step with the true nuisances; controls must not.
    """
    chosen = _on_file(scores, features) if scores else list(cases(setting or ["table1"], learner, n or ()))
    cells: list[Cell] = []
    with progress("boards", runs * len(chosen)) as done:
        for case in chosen:
            cells += measure_coverage(case, runs, processes=processes, on_done=done)
    REPORT.show(cells, json=json, plot=plot)
    finish(all(cell.passed for cell in cells))


def _on_file(scores: Path, features: Path | None) -> list[Case]:
    try:
        return list(on_scores(read_scores(scores, features)))
    except (UnusableFile, BrokenFile) as error:
        raise typer.BadParameter(str(error)) from None
