"""`orthorank refit`: ask for a refit and wait for it."""

from __future__ import annotations

import time
from functools import partial
from typing import Annotated
from uuid import UUID

import typer
from rich.progress import Progress

from app.cli.database import refusals_told, units_of_work
from app.cli.options import Data, connected, redis_url
from app.db.unit_of_work import UnitOfWork
from app.queue import CeleryQueue, open_celery
from app.services import boards, jobs
from app.settings import Settings

commands = typer.Typer()
STEP = 0.2
"""Seconds between two looks at the job."""


@commands.command()
def refit(
    board: Annotated[str, typer.Argument(help="Slug of the board.")],
    wait: Annotated[bool, typer.Option(help="Wait until the refit is done.")] = True,
    data: Data = None,
) -> None:
    """Refit a board now. The worker does it; this command shows how far it has come."""
    settings = connected(data)
    with refusals_told(), units_of_work(settings) as open_work:
        job = _request(open_work(), board, settings)
        if wait:
            _follow(open_work, job, board)


def _request(opened: UnitOfWork, slug: str, settings: Settings) -> UUID:
    with opened as work:
        queue = CeleryQueue(open_celery(redis_url(settings)))
        return jobs.request_refit(work, boards.find(work, slug), queue).id


def _follow(open_work: partial[UnitOfWork], job_id: UUID, board: str) -> None:
    with Progress(transient=True) as progress:
        task = progress.add_task(f"refit {board}", total=1.0)
        while True:
            with open_work() as work:
                job = work.jobs.find(job_id)
                assert job is not None
            progress.update(task, completed=job.progress)
            if job.state == "succeeded":
                break
            if job.state == "failed":
                typer.echo(f"orthorank: {job.error}", err=True)
                raise typer.Exit(1)
            time.sleep(STEP)
    print(job.snapshot_id)
