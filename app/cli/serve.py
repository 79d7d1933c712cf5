"""The API on its own."""

from __future__ import annotations

import gc
import os
import sys
import time
from socket import socket

import typer
import uvicorn
from fastapi import FastAPI

from app.api.punctual import PunctualProtocol
from app.api.streams import Streams
from app.api.vote_protocol import protocol_of
from app.cli.addresses import Host, Port, environment
from app.cli.options import Data, connected, database_url
from app.cli.schema import require_schema
from app.main import create_app
from app.settings import ServerSettings

commands = typer.Typer()

TICKS = 10
"""Of the server, in a second."""


@commands.command()
def api(data: Data = None, host: Host = None, port: Port = None) -> None:
    """Serve the HTTP interface and the pages."""
    settings = connected(data)
    require_schema(database_url(settings))
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


def server_of(app: FastAPI, settings: ServerSettings) -> BoardServer:
    """A server of the application, by whose protocol votes go past it."""
    config = uvicorn.Config(
        app,
        http=protocol_of(app.state.ports.votes),
        ws="none",
        host=settings.host,
        port=settings.port,
        log_level=settings.log_level,
        access_log=False,
        log_config=None,
        timeout_graceful_shutdown=5,
    )
    return BoardServer(config, app.state.ports.streams, request_seconds=settings.request_seconds)


class BoardServer(uvicorn.Server):
    """A server that waits for no request for ever, and whose stop ends the streams first: it would wait for them.

    Parameters
    ----------
    request_seconds : that a request may take to come in.
    """

    def __init__(self, config: uvicorn.Config, streams: Streams, *, request_seconds: float) -> None:
        super().__init__(config)
        self._streams = streams
        self._request_seconds = request_seconds

    async def on_tick(self, counter: int) -> bool:
        """Look after the connections once a second; whether to stop."""
        if counter % TICKS == 0:
            now = time.monotonic()
            for connection in [*self.server_state.connections]:
                assert isinstance(connection, PunctualProtocol)
                connection.look(now, self._request_seconds)
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket] | None = None) -> None:
        """Stop to serve."""
        self._streams.close()
        await super().shutdown(sockets)
