"""The API on its own, migrations, and the addresses in use."""

from __future__ import annotations

import gc
import os
import shlex
import sys
from collections.abc import Iterator
from socket import socket
from typing import Annotated

import typer
import uvicorn
from fastapi import FastAPI
from psycopg.conninfo import conninfo_to_dict

from app.api.streams import Streams
from app.api.vote_protocol import protocol_of
from app.cli.options import Data, connected, database_url, redis_url
from app.db.migrations import upgrade
from app.main import create_app
from app.settings import ServerSettings, Settings

commands = typer.Typer()

Host = Annotated[str | None, typer.Option(help="Address to listen on. Default: ORTHORANK_HOST, else 127.0.0.1.")]
Port = Annotated[int | None, typer.Option(min=1, max=65535, help="TCP port. Default: ORTHORANK_PORT, else 8000.")]

# libpq's own variables, by the name of the part of the URL.
LIBPQ = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE"}


@commands.command()
def api(data: Data = None, host: Host = None, port: Port = None) -> None:
    """Serve the HTTP interface and the pages."""
    settings = connected(data)
    # The application is made from the environment.
    os.environ.update(environment(settings))
    # Votes are committed by one thread, and five milliseconds until it has its turn, six times a group, are a wait.
    sys.setswitchinterval(0.0005)
    asked = {name: value for name, value in (("host", host), ("port", port)) if value}
    app = create_app()
    spare_the_collector()
    server_of(app, settings.server.model_copy(update=asked)).run()


def spare_the_collector() -> None:
    """Look for cyclic garbage seldom, and not among what was there at the start: batches took half of their time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


def server_of(app: FastAPI, settings: ServerSettings) -> EndingStreams:
    """A server of the application, by whose protocol votes go past it."""
    config = uvicorn.Config(
        app,
        http=protocol_of(app.state.ports.votes),
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=5,
    )
    return EndingStreams(config, app.state.ports.streams)


class EndingStreams(uvicorn.Server):
    """A server whose stop ends the streams first: it would wait for them, and they for nothing."""

    def __init__(self, config: uvicorn.Config, streams: Streams) -> None:
        super().__init__(config)
        self._streams = streams

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Stop to serve."""
        self._streams.close()
        await super().shutdown(sockets)


@commands.command()
def migrate(data: Data = None) -> None:
    """Bring the database to the schema of this version."""
    upgrade(database_url(connected(data, redis=False)))
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
