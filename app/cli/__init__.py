"""The command `orthorank`: thin, each command calls one service.

Each module has a Typer application named `commands`; a group such as `key` names itself there. Only the module of
the command asked for is imported, so that `orthorank env` does not wait for the numerical libraries.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NoReturn

import typer
from sqlalchemy.exc import OperationalError

from app.cli.options import NotConnected, OtherSchema
from app.cli.supervisor import GaveUp
from app.embedded.errors import EmbeddedError
from app.settings import SettingsError

MODULES = {
    "app.cli.up": ("up",),
    "app.cli.serve": ("api",),
    "app.cli.addresses": ("env", "migrate"),
    "app.cli.worker": ("worker",),
    "app.cli.beat": ("beat",),
    "app.cli.doctor": ("doctor",),
    "app.cli.demo": ("demo",),
    "app.cli.keys": ("key",),
    "app.cli.exports": ("export",),
    "app.cli.imports": ("import",),
    "app.cli.refit": ("refit",),
    "app.cli.simulate": ("simulate",),
    "app.cli.experiments": ("experiment",),
}
FAILED, USAGE = 1, 2


def main() -> None:
    """Run the command line and turn what can go wrong into one message and an exit status."""
    try:
        _commands(sys.argv[1:])()
    except SettingsError as error:
        _fail(error, USAGE)
    except (EmbeddedError, NotConnected, OtherSchema, GaveUp) as error:
        _fail(error, FAILED)
    except OperationalError as error:
        print(f"orthorank: the database does not answer as it should: {error.orig}", file=sys.stderr)
        sys.exit(FAILED)


def _commands(words: list[str]) -> typer.Typer:
    asked = next((word for word in words if not word.startswith("-")), None)
    owners = [module for module, names in MODULES.items() if asked in names]
    commands = typer.Typer(
        name="orthorank",
        help="Live rankings from preference votes. Everything on one machine: `orthorank up`.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # The other mode ends lines of a paragraph where the source does.
        rich_markup_mode="markdown",
    )
    # With one command and no callback Typer would leave out the command's name.
    commands.callback()(lambda: None)
    for module in owners or MODULES:
        commands.add_typer(import_module(module).commands)
    return commands


def _fail(error: Exception, status: int) -> NoReturn:
    print(f"orthorank: {error}", file=sys.stderr)
    sys.exit(status)
