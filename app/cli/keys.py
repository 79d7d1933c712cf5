"""`orthorank key …`: make, list and revoke bearer keys."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, get_args

import typer

from app.cli.database import refusals_told, units_of_work
from app.cli.options import Data, connected
from app.db.unit_of_work import UnitOfWork
from app.domain.keys import KEY_DRAFT, Scope
from app.domain.parsing import parse
from app.services import keys

commands = typer.Typer()
key = typer.Typer(no_args_is_help=True, help="Bearer keys of the HTTP interface.")
commands.add_typer(key, name="key")


def _scopes(sent: list[str]) -> list[str]:
    for scope in sent:
        if scope not in get_args(Scope):
            raise typer.BadParameter(f"{scope!r} is none of {', '.join(get_args(Scope))}")
    return sent


SCOPE_HELP = f"What the key may do: {', '.join(get_args(Scope))}; repeatable. admin implies the rest."
Scopes = Annotated[list[str], typer.Option("--scope", callback=_scopes, help=SCOPE_HELP)]
OfBoard = Annotated[str | None, typer.Option("--board", help="The one board that the key opens. Default: all.")]
Purpose = Annotated[str, typer.Option("--name", help="What the key is for, as lists show it.")]


@key.command()
def create(scope: Scopes, board: OfBoard = None, name: Purpose = "", data: Data = None) -> None:
    """Make a key and print it, alone, on standard output. It is never shown again."""
    with _work(data) as work:
        _, secret = keys.create(work, parse(KEY_DRAFT, {"scopes": scope, "board": board, "name": name}))
    print(secret)


@key.command("list")
def list_keys(data: Data = None) -> None:
    """List the keys in use: number, first characters, scopes, board, name, last use (UTC)."""
    with _work(data) as work:
        for view in keys.listed(work):
            used = view.key.last_used_at
            when = "never used" if used is None else f"used {used:%Y-%m-%d %H:%M}"
            fields = (view.key.id, f"{view.key.prefix}…", ",".join(view.key.scopes), view.board or "all boards")
            print(*fields, view.key.name or "-", when, sep="\t")


@key.command()
def revoke(
    key_id: Annotated[int, typer.Argument(min=1, max=2**63 - 1, help="Number of the key, from `orthorank key list`.")],
    data: Data = None,
) -> None:
    """End a key at once."""
    with _work(data) as work:
        keys.revoke(work, key_id)


@contextmanager
def _work(data: Data) -> Iterator[UnitOfWork]:
    with refusals_told(), units_of_work(connected(data, redis=False)) as open_work, open_work() as work:
        yield work
