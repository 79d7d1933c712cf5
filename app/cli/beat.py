"""The clock of the background work."""

from __future__ import annotations

import typer

from app.cli.options import Data, connected
from workers.schedule import beat_arguments, create_beat

commands = typer.Typer()


@commands.command()
def beat(data: Data = None) -> None:
    """Send the periodic tasks: one per installation."""
    settings = connected(data)
    create_beat(settings).start(beat_arguments(settings))
