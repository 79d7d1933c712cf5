"""`orthorank experiment equilibrium`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from app.cli.experiments.output import CORES, AsJson, Plot, Processes, Report, finish, progress
from app.experiments.acquisition.figures import Comparison, Part, compare
from app.experiments.acquisition.report import as_record, draw, tables
from app.experiments.equilibrium.orthogonality import Orthogonality
from app.experiments.equilibrium.speed import Speed
from app.experiments.equilibrium.strength import Frontier, Regularisation
from app.experiments.equilibrium.table import Table

REPORT = Report[Comparison](tables, as_record, draw)
PARTS: Mapping[str, Callable[[str, int], Part]] = {
    "table": Table,
    "regularisation": Regularisation,
    "frontier": Frontier,
    "orthogonality": Orthogonality,
    "speed": Speed,
}
RUNS = {"table": 5, "regularisation": 5, "frontier": 5, "orthogonality": 5, "speed": 2}
NAMES = ", ".join(PARTS)


def _known(name: str) -> str:
    if name not in PARTS:
        raise typer.BadParameter(f"{name!r} is none of {NAMES}")
    return name


def equilibrium(
    part: Annotated[str, typer.Option(callback=_known, help=f"what is put to the test: {NAMES}")] = "table",
    runs: Annotated[int | None, typer.Option(min=2, help="worlds", show_default=False)] = None,
    n: Annotated[int, typer.Option(min=100, help="contexts with votes")] = 3000,
    *,
    learner: Annotated[str, typer.Option(help="the outcome learner: lightgbm or davidson")] = "lightgbm",
    processes: Processes = CORES,
    json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Is the equilibrium of debiased payoffs harder to beat, context by context, than what other methods would choose?

    table: pairs, rankings and winners by one, three and five voters, every method. regularisation: strengths of l2
    and kl. frontier: hard budgets, and the least exploitability that they allow. orthogonality: how errors of the
    nuisances pass on, exactly. speed: the solver against support enumeration and a linear programme. Exit status 1
    where a bar is missed.
    """
    made = runs or RUNS[part]
    with progress("worlds", made) as done:
        found = compare(PARTS[part](learner, n), made, processes=processes, on_done=done)
    REPORT.show(found, json=json, plot=plot)
    finish(found.passed)
