"""`orthorank import`: votes and judgements from files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_args

import orjson
import typer
from sqlalchemy.exc import OperationalError

from app.cli.database import units_of_work
from app.cli.import_progress import Terminal, document_of, lines_of
from app.cli.options import Data, connected
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Unit as BoardUnit
from app.domain.errors import DomainError
from app.domain.features import FeatureKind
from app.domain.outcomes import Preset
from app.formats.format import FIELDS_HELP, RowKind, is_field
from app.formats.plan import Request
from app.formats.registry import FORMATS, FormatName
from app.formats.rows import UnusableFile
from app.services.imports.orders import Order
from app.services.imports.run import run

commands = typer.Typer()
ORDER, ADJUST, BOARD, OUTPUT = "What to import", "How rows are read", "A new board", "What is told"

File = Annotated[Path, typer.Argument(help="CSV, TSV, JSON (one array), JSONL or Parquet; plain or gzip.")]
Slug = Annotated[str, typer.Option("--board", help="Slug of the board; made when it is new.", rich_help_panel=ORDER)]
Named = Annotated[
    FormatName,
    typer.Option("--format", help="Kind of file; map: --map says it all.", rich_help_panel=ORDER),
]
Mapped = Annotated[
    list[str] | None,
    typer.Option(
        "--map",
        metavar="FIELD=COLUMN",
        help=f"The column of a field, over the format's; repeatable. Fields: {FIELDS_HELP}. a/b joins two columns, "
        "a.b looks into a nested one; count.OUTCOME is a column that counts votes with this outcome.",
        rich_help_panel=ADJUST,
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=VALUE",
        help="Take these rows only; repeatable: two values of one column are alternatives.",
        rich_help_panel=ADJUST,
    ),
]
As = Annotated[
    RowKind | None,
    typer.Option("--as", help="What the rows are. Default: what the format says.", rich_help_panel=ADJUST),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--feature-kind",
        metavar="NAME=KIND",
        help=f"{', '.join(get_args(FeatureKind))}; repeatable. Default: numeric where the first 1,000 rows hold "
        "numbers alone, else categorical.",
        rich_help_panel=BOARD,
    ),
]
Outcomes = Annotated[
    Preset | None,
    typer.Option(help="Outcomes of votes. Default: the format's, arena with --map.", rich_help_panel=BOARD),
]
Unit = Annotated[BoardUnit | None, typer.Option(help="Default: battle.", rich_help_panel=BOARD)]
Fields = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="KEY=VALUE", help="Any other field, its value as JSON; repeatable.", rich_help_panel=BOARD
    ),
]
CreateItems = Annotated[
    bool,
    typer.Option(
        "--create-items", help="Make unknown items on a board whose items are not open.", rich_help_panel=ORDER
    ),
]
Rejects = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="Write each rejected line with its reason, tab-separated.", rich_help_panel=OUTPUT
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.", rich_help_panel=OUTPUT)]


@commands.command("import")
def import_file(
    file: File,
    board: Slug,
    format_: Named = "map",
    map_: Mapped = None,
    where: Where = None,
    as_: As = None,
    create_items: CreateItems = False,
    outcomes: Outcomes = None,
    unit: Unit = None,
    feature_kind: Kinds = None,
    set_: Fields = None,
    rejects: Rejects = None,
    as_json: AsJson = False,
    data: Data = None,
) -> None:
    """Import votes or judgements from a file.

    Importing a file again adds nothing, so an import that was stopped is completed by running it again. Rows that
    cannot be imported are told with their lines and stop nothing. Exit status: 0 everything is on the board; 1 rows
    were rejected, or the file is damaged; 2 the file cannot be read as asked, and nothing was written.
    """
    request = Request(FORMATS[format_], _mapping(map_), _pairs(where, "--where"), as_, _kinds(feature_kind))
    order = Order(file, board, request, _board_fields(set_, outcomes, unit), create_items)
    with _database(data) as open_work, Terminal(file.name, rejects) as terminal:
        summary = run(open_work, order, terminal)
    print(orjson.dumps(document_of(summary)).decode() if as_json else "\n".join(lines_of(summary)))
    raise typer.Exit(0 if summary.complete else 1)


@contextmanager
def _database(data: Path | None) -> Iterator[partial[UnitOfWork]]:
    """Units of work on the database; what stops an import becomes a message and an exit status."""
    try:
        with units_of_work(connected(data, redis=False)) as open_work:
            yield open_work
    except (UnusableFile, DomainError) as error:
        typer.echo(f"orthorank: {error}", err=True)
        raise typer.Exit(2) from None
    except OperationalError as error:
        typer.echo(f"orthorank: {error.orig}\nRun the same import again: what is in is not doubled.", err=True)
        raise typer.Exit(1) from None


def _pairs(written: list[str] | None, option: str) -> list[tuple[str, str]]:
    pairs = [each.partition("=") for each in written or []]
    for name, sign, value in pairs:
        if not (name and sign):
            raise typer.BadParameter(f"expected NAME=VALUE, got {name + sign + value!r}", param_hint=option)
    return [(name, value) for name, _, value in pairs]


def _mapping(written: list[str] | None) -> dict[str, str]:
    mapped = dict(_pairs(written, "--map"))
    for name, column in mapped.items():
        if not is_field(name) or not column:
            raise typer.BadParameter(f"{name}={column}: the fields are {FIELDS_HELP}", param_hint="--map")
    return mapped


def _kinds(written: list[str] | None) -> dict[str, FeatureKind]:
    known: dict[str, FeatureKind] = {kind: kind for kind in get_args(FeatureKind)}
    kinds = dict(_pairs(written, "--feature-kind"))
    for name, kind in kinds.items():
        if kind not in known:
            raise typer.BadParameter(f"{name}={kind}: the kinds are {', '.join(known)}", param_hint="--feature-kind")
    return {name: known[kind] for name, kind in kinds.items()}


def _board_fields(written: list[str] | None, outcomes: Preset | None, unit: str | None) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in _pairs(written, "--set"):
        try:
            fields[name] = orjson.loads(value)
        except orjson.JSONDecodeError:
            # A bare word is a string: --set cluster=voter.
            fields[name] = value
    named = {"outcomes": outcomes, "unit": unit}
    return {**fields, **{name: value for name, value in named.items() if value is not None}}
