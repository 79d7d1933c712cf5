"""The API on its own."""

from __future__ import annotations

import gc
import os
import sys
from socket import socket

import typer
import uvicorn
from fastapi import FastAPI

from app.api.streams import Streams
from app.api.vote_protocol import protocol_of
from app.cli.addresses import Host, Port, environment
from app.cli.options import Data, connected
from app.main import create_app
from app.settings import ServerSettings

commands = typer.Typer()


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
