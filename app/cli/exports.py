"""`orthorank export`: a board's votes into a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import Data, connected, database_url
from app.db.engine import open_engine, open_sessions
from app.db.unit_of_work import UnitOfWork
from app.domain.errors import DomainError
from app.formats.writers import Container
from app.services import boards
from app.services.exports import export_votes

commands = typer.Typer()


@commands.command("export")
def export_board(
    board: Annotated[str, typer.Option("--board", help="Slug of the board.")],
    format_: Annotated[Container, typer.Option("--format", help="What to write.")] = "jsonl",
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Where to. Default: standard output.", show_default=False)
    ] = None,
    raw_voters: Annotated[
        bool,
        typer.Option("--raw-voters", help="Write voters as they were sent. Default: each is renamed, always alike."),
    ] = False,
    data: Data = None,
) -> None:
    """Export a board's votes with the propensities used. `orthorank import --format orthorank` reads them back."""
    engine = open_engine(database_url(connected(data, redis=False)))
    try:
        with UnitOfWork(open_sessions(engine)) as work:
            found = boards.find(work, board)
            _write(export_votes(work, found, format_, raw_voters=raw_voters), output)
    except DomainError as error:
        typer.echo(f"orthorank: {error}", err=True)
        raise typer.Exit(1) from None
    finally:
        engine.dispose()


def _write(blocks: Iterable[bytes], output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.writelines(blocks)
        return
    # A file of the final name is always whole.
    growing = output.with_name(f"{output.name}.partial")
    with growing.open("wb") as file:
        file.writelines(blocks)
    growing.replace(output)
