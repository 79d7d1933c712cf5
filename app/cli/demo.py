"""`orthorank demo`: the demonstration's board and key."""

from __future__ import annotations

import typer

from app.cli.database import units_of_work
from app.cli.options import Data, connected
from app.services.demo import seed

commands = typer.Typer()


@commands.command()
def demo(data: Data = None) -> None:
    """Make the board named demo with simulated votes unless it is there, and print a fresh admin key alone."""
    with units_of_work(connected(data, redis=False)) as open_work:
        typer.echo(seed(open_work))
