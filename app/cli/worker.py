"""The background worker."""

from __future__ import annotations

import typer

from app.cli.options import Data, connected
from workers.main import create_worker, worker_arguments

commands = typer.Typer()


@commands.command()
def worker(data: Data = None) -> None:
    """Run refits and live updates."""
    settings = connected(data)
    create_worker(settings).worker_main(worker_arguments(settings))
