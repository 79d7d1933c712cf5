"""The background worker."""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Annotated

import typer

from app.cli.options import Data, connected, database_url
from app.cli.schema import require_schema
from workers.main import create_worker, worker_arguments

commands = typer.Typer()

YIELDS = 5
"""How much a worker for refits or their tasks alone gives way to the API and to live updates (`nice`)."""


class Work(StrEnum):
    """What a worker may be there for alone."""

    REFITS = "refits"
    LIVE = "live"
    TASKS = "tasks"


Only = Annotated[
    Work | None, typer.Option("--only", help="Do one kind of work alone; tasks are those of refits that others lead.")
]


@commands.command()
def worker(data: Data = None, only: Only = None) -> None:
    """Run refits and live updates; where both matter, one worker for each (`--only`)."""
    settings = connected(data)
    require_schema(database_url(settings))
    if only in (Work.REFITS, Work.TASKS):
        os.nice(YIELDS)
    create_worker(settings).worker_main(worker_arguments(settings, only))
