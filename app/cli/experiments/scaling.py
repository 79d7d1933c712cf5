"""`orthorank experiment scaling`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Annotated

import typer

from app.cli.experiments.output import CORES, AsJson, Plot, Report, progress
from app.experiments.scaling import report
from app.experiments.scaling.measure import Point, Size, measure
from app.experiments.scaling.service import running

REPORT = Report[Sequence[Point]](report.tables, report.as_record, report.plot)
Votes = Annotated[list[int], typer.Option("--n", min=200, help="votes of a board; repeatable")]
Items = Annotated[list[int], typer.Option("--items", min=2, max=200, help="items of a board; repeatable")]
Features = Annotated[int, typer.Option(min=2, max=100, help="numeric features of a context")]
Sides = Annotated[list[int], typer.Option("--processes", min=1, help="processes of a worker; repeatable")]
Workers = Annotated[list[int], typer.Option("--workers", min=1, help="workers of refits; repeatable")]


def scaling(
    n: Votes = [1_000, 10_000, 100_000],  # noqa: B006 - typer's way to give several
    items: Items = [20],  # noqa: B006
    features: Features = 12,
    *,
    processes: Sides = [1, CORES],  # noqa: B006
    workers: Workers = [1],  # noqa: B006
    json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Time and memory of a board of each size: storing votes, a refit, a vote's way into the ranking, reads.

    Several workers share each refit, as on several machines. All of it runs as `orthorank up` starts it, in a folder of
    its own, on whatever else the machine does meanwhile.
    """
    found: list[Point] = []
    crews = list(product(sorted(set(workers)), sorted(set(processes))))
    with progress("boards", len(n) * len(items) * len(crews)) as done:
        for many, side in crews:
            with running(side, many) as service:
                for votes, size in product(n, items):
                    found.append(measure(service, Size(votes, size, features, side, many)))
                    done()
    REPORT.show(found, json=json, plot=plot)
