"""Where everything runs, and migrations of it: commands that do not wait for the API to be imported."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Annotated

import typer
from psycopg.conninfo import conninfo_to_dict

from app.cli.options import Data, connected, database_url, redis_url
from app.cli.schema import migrated
from app.settings import Settings

commands = typer.Typer()

Host = Annotated[str | None, typer.Option(help="Address to listen on. Default: ORTHORANK_HOST, else 127.0.0.1.")]
Port = Annotated[int | None, typer.Option(min=1, max=65535, help="TCP port. Default: ORTHORANK_PORT, else 8000.")]

# libpq's own variables, by the name of the part of the URL.
LIBPQ = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}


@commands.command()
def migrate(data: Data = None) -> None:
    """Bring the database to the schema of this version."""
    migrated(database_url(connected(data, redis=False)))
    print("The database is up to date.")


@commands.command()
def env(data: Data = None) -> None:
    """Print the addresses in use as shell variables: eval "$(orthorank env)", then psql works as it is."""
    settings = connected(data)
    for name, value in _exports(settings):
        print(f"export {name}={shlex.quote(value)}")


def environment(settings: Settings) -> dict[str, str]:
    """Return the variables from which another process reads the same servers and folder."""
    return {
        "ORTHORANK_DATABASE_URL": database_url(settings),
        "ORTHORANK_REDIS_URL": redis_url(settings),
        "ORTHORANK_DATA": str(settings.storage.data.absolute()),
    }


def _exports(settings: Settings) -> Iterator[tuple[str, str]]:
    yield "ORTHORANK_DATABASE_URL", database_url(settings)
    yield "ORTHORANK_REDIS_URL", redis_url(settings)
    parts = conninfo_to_dict(database_url(settings))
    for part, variable in LIBPQ.items():
        if part in parts:
            yield variable, str(parts[part])
