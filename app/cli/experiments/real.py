"""`orthorank experiment real`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.cli.experiments.output import AsJson, Learner, Plot, Report, finish, progress
from app.experiments.real import LLMFAO, MTBENCH, Ranking, as_records, draw, rankings, tables
from app.experiments.votes import read_votes
from app.formats.rows import BrokenFile, UnusableFile

REPORT = Report[list[Ranking]](tables, as_records, draw)
File = Annotated[Path | None, typer.Option(exists=True, dir_okay=False, show_default=False)]


def real(
    mtbench: File = None,
    llmfao: File = None,
    *,
    learner: Learner = "davidson",
    json: AsJson = False,
    plot: Plot = None,
) -> None:
    """Borda, Bradley-Terry and rank centrality of MT-Bench's and LLMFAO's human votes, plug-in against debiased.

    Files as `orthorank import` reads them; no data are shipped. Propensities are estimated, intervals simultaneous.
    """
    files = {"MT-Bench": (mtbench, MTBENCH), "LLMFAO": (llmfao, LLMFAO)}
    given = {name: (path, request) for name, (path, request) in files.items() if path is not None}
    if not given:
        raise typer.BadParameter("name a file: --mtbench FILE, --llmfao FILE or both")
    found: list[Ranking] = []
    try:
        with progress("files", len(given)) as done:
            for name, (path, request) in given.items():
                found += rankings(name, read_votes(path, request), learner)
                done()
    except (UnusableFile, BrokenFile) as error:
        raise typer.BadParameter(str(error)) from None
    REPORT.show(found, json=json, plot=plot)
    finish(True)
