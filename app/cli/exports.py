"""`orthorank export`: a board's votes into a file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from app.cli.database import refusals_told, units_of_work
from app.cli.options import Data, connected
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
    with refusals_told(), units_of_work(connected(data, redis=False)) as open_work, open_work() as work:
        found = boards.find(work, board)
        _write(export_votes(work, found, format_, raw_voters=raw_voters), output)


def _write(blocks: Iterable[bytes], output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.writelines(blocks)
        return
    # A file of the final name is always whole.
    growing = output.with_name(f"{output.name}.partial")
    with growing.open("wb") as file:
        file.writelines(blocks)
    growing.replace(output)
