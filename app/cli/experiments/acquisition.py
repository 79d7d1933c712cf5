"""`orthorank experiment acquisition`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer

from app.cli.experiments.coverage import REPORT as COVERAGE
from app.cli.experiments.output import CORES, AsJson, Learner, Plot, Processes, Report, finish, progress
from app.experiments.acquisition.criteria import Criteria
from app.experiments.acquisition.figures import Comparison, Part, compare
from app.experiments.acquisition.oracle import AgainstOracle
from app.experiments.acquisition.report import as_record, draw, tables
from app.experiments.acquisition.rounds import adaptive
from app.experiments.acquisition.table2 import two_stages
from app.experiments.coverage.cells import Cell
from app.experiments.coverage.run import coverage

REPORT = Report[Comparison](tables, as_record, draw)
PARTS: Mapping[str, Callable[[str], Part]] = {"table2": two_stages, "oracle": AgainstOracle, "criteria": Criteria}
ROUNDS = "rounds"
RUNS = {"table2": 200, "oracle": 20, "criteria": 20, ROUNDS: 100}
NAMES = ", ".join(RUNS)


Runs = Annotated[
    int | None,
    typer.Option(
        min=2,
        help=f"simulated boards [default: {', '.join(f'{name} {runs}' for name, runs in RUNS.items())}]",
        show_default=False,
    ),
]


def _known(name: str) -> str:
    if name not in RUNS:
        raise typer.BadParameter(f"{name!r} is none of {NAMES}")
    return name


def acquisition(
    part: Annotated[str, typer.Option(callback=_known, help=f"what is put to the test: {NAMES}")] = "table2",
    runs: Runs = None,
    *,
    learner: Learner = "davidson",
    processes: Processes = CORES,
    json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Does a policy that chooses the pairs make scores more certain than a uniform one, and are they still right?

    table2: 1,500 contexts, 2,000 labels in two stages, every policy. oracle: true variance of the A-optimal policy
    against that of one which knows the preferences. criteria: D- and E-optimal, contrast. rounds: coverage after three
    rounds of choosing, labelling and fitting. Exit status 1 where a bar is missed.
    """
    made = runs or RUNS[part]
    if part == ROUNDS:
        cells = _rounds(made, learner, processes)
        COVERAGE.show(cells, json=json, plot=plot)
        finish(all(cell.passed for cell in cells))
    with progress("boards", made) as done:
        found = compare(PARTS[part](learner), made, processes=processes, on_done=done)
    REPORT.show(found, json=json, plot=plot)
    finish(found.passed)


def _rounds(runs: int, learner: str, processes: int) -> list[Cell]:
    cases = list(adaptive(learner))
    cells: list[Cell] = []
    with progress("boards", runs * len(cases)) as done:
        for case in cases:
            cells += coverage(case, runs, processes=processes, on_done=done)
    return cells
