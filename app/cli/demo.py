"""`orthorank demo`: the demonstration's board and key."""

from __future__ import annotations

import typer

from app.cli.options import Data, connected, database_url
from app.db.engine import open_engine, open_sessions
from app.db.unit_of_work import UnitOfWork
from app.services.demo import seed

commands = typer.Typer()


@commands.command()
def demo(data: Data = None) -> None:
    """Make the board named demo with simulated votes unless it is there, and print a fresh admin key alone."""
    engine = open_engine(database_url(connected(data, redis=False)))
    sessions = open_sessions(engine)
    try:
        typer.echo(seed(lambda: UnitOfWork(sessions)))
    finally:
        engine.dispose()
