"""The background worker and its clock."""

from __future__ import annotations

import typer

from app.cli.options import Data, connected
from workers.main import beat_arguments, create_worker, worker_arguments

commands = typer.Typer()


@commands.command()
def worker(data: Data = None) -> None:
    """Run refits and live updates."""
    settings = connected(data)
    create_worker(settings).worker_main(worker_arguments(settings))


@commands.command()
def beat(data: Data = None) -> None:
    """Send the periodic tasks: one per installation."""
    settings = connected(data)
    create_worker(settings).start(beat_arguments(settings))
