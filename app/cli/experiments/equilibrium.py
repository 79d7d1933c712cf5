"""`orthorank experiment equilibrium`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from app.cli.experiments.output import CORES, AsJson, Plot, Processes, Report, finish, progress
from app.experiments.acquisition.figures import Comparison, Part, compare
from app.experiments.acquisition.report import as_record, draw, tables
from app.experiments.equilibrium.judges import Panel
from app.experiments.equilibrium.orthogonality import Orthogonality
from app.experiments.equilibrium.router import Router
from app.experiments.equilibrium.serving import Serving
from app.experiments.equilibrium.speed import Speed
from app.experiments.equilibrium.strength import Frontier, Regularisation
from app.experiments.equilibrium.table import Table
from app.experiments.scores import read_prices, read_scores
from app.formats.rows import BrokenFile, UnusableFile

REPORT = Report[Comparison](tables, as_record, draw)
PARTS: Mapping[str, Callable[[str, int], Part]] = {
    "table": Table,
    "regularisation": Regularisation,
    "frontier": Frontier,
    "orthogonality": Orthogonality,
    "speed": Speed,
    "serving": Serving,
}
RUNS = {"table": 5, "regularisation": 5, "frontier": 5, "orthogonality": 5, "speed": 2, "serving": 2, "router": 5}
ROUTER = "router"
NAMES = ", ".join((*PARTS, ROUTER))
File = Annotated[Path | None, typer.Option(exists=True, dir_okay=False, show_default=False)]


def _known(name: str) -> str:
    if name not in (*PARTS, ROUTER):
        raise typer.BadParameter(f"{name!r} is none of {NAMES}")
    return name


def equilibrium(
    part: Annotated[str, typer.Option(callback=_known, help=f"what is put to the test: {NAMES}")] = "table",
    runs: Annotated[int | None, typer.Option(min=2, help="worlds", show_default=False)] = None,
    n: Annotated[int, typer.Option(min=100, help="contexts with votes")] = 3000,
    *,
    scores: File = None,
    features: File = None,
    models: File = None,
    learner: Annotated[str, typer.Option(help="the outcome learner: lightgbm or davidson")] = "lightgbm",
    processes: Processes = CORES,
    json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Is the equilibrium of debiased payoffs harder to beat, context by context, than what other methods would choose?

    table: pairs, rankings and winners by one, three and five voters, every method. regularisation: strengths of l2
    and kl. frontier: hard budgets, and the least exploitability that they allow. orthogonality: how errors of the
    nuisances pass on, exactly. speed: the solver against support enumeration and a linear programme. serving: the
    policy against payoffs and solver. router: --scores (as `experiment coverage` reads them, with a column `split`),
    --models (model, output_price), --features: three judges vote on training questions, test questions are routed. Exit
    status 1 where a bar is missed.
    """
    measured = _router(scores, features, models, learner, n) if part == ROUTER else PARTS[part](learner, n)
    made = runs or RUNS[part]
    with progress("worlds", made) as done:
        found = compare(measured, made, processes=processes, on_done=done)
    REPORT.show(found, json=json, plot=plot)
    finish(found.passed)


def _router(scores: Path | None, features: Path | None, models: Path | None, learner: str, n: int) -> Router:
    if scores is None or models is None:
        raise typer.BadParameter("the part router needs --scores FILE and --models FILE")
    try:
        table = read_scores(scores, features)
        panel = Panel(table, read_prices(models, table.items))
    except (UnusableFile, BrokenFile) as error:
        raise typer.BadParameter(str(error)) from None
    if not table.test.any() or table.test.all():
        raise typer.BadParameter(f"{scores}: no test or no training questions in a column split")
    return Router(panel, learner, n)
