"""`orthorank experiment judges` and `misspecification`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from app.cli.experiments.output import CORES, AsJson, Learner, Plot, Processes, Report, finish, progress
from app.experiments import judges as by_judge
from app.experiments import misspecification as by_gamma
from app.experiments.curve_report import as_record, plot, tables
from app.experiments.curves import Curves, Outcomes, Runs, run

REPORT = Report[Curves](tables, as_record, plot)
Boards = Annotated[int, typer.Option(min=2, help="simulated boards, each read by all estimators")]
Contexts = Annotated[int, typer.Option(min=20, help="contexts of a board, about 2.8 votes each")]


def judges(
    runs: Boards = 200,
    n: Contexts = 1000,
    *,
    learner: Learner = by_judge.LEARNER,
    processes: Processes = CORES,
    json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Error of debiased scores with a judge's verdicts as a feature, the judge ever less noisy; and with a useless one.

    Exit status 1 unless the error falls as the noise does, within noise, and a useless judge costs less than 5%.
    """
    found = _measured(by_judge.judged(learner, n), runs, processes, by_judge.curves)
    REPORT.show(found, json=json, plot=plot)
    finish(found.passed)


def misspecification(
    runs: Boards = 400,
    n: Contexts = 1000,
    *,
    learner: Learner = "davidson",
    processes: Processes = CORES,
    json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Restricted Bradley-Terry against the projection as preferences depart from a Bradley-Terry model by γ.

    Beside them stand the plug-in and contextual Bradley-Terry models. Exit status 1 unless the restricted estimator
    wins at γ = 0, loses beyond some γ, covers where votes may be ties, and fails to once ties are ignored.
    """
    found = _measured(by_gamma.misspecified(learner, n), runs, processes, by_gamma.curves)
    REPORT.show(found, json=json, plot=plot)
    finish(found.passed)


def _measured(task: Callable[[int], Outcomes], runs: int, processes: int, curves: Callable[[Runs], Curves]) -> Curves:
    with progress("boards", runs) as done:
        return curves(run(task, runs, processes=processes, on_done=done))
