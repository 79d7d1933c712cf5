"""The API behind a real uvicorn in a thread, and readers on real sockets."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn
from fastapi import FastAPI


@contextmanager
def listening(app: FastAPI) -> Iterator[int]:
    """Serve an application on a free port; the port."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


class Told(NamedTuple):
    """One event of a stream."""

    kind: str
    name: str
    data: dict[str, Any]


class Listener:
    """Reads a stream of events."""

    def __init__(self, port: int, path: str, **headers: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self._connection.request("GET", path, headers=headers)
        self.answer = self._connection.getresponse()

    def next(self, *, timeout: float = 10.0) -> Told | None:
        """The next event; None where the stream ends first."""
        fields: dict[str, str] = {}
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout)
        while line := self.answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if line == "\n" and "data" in fields:
                return Told(fields["event"], fields["id"], json.loads(fields["data"]))
            fields = {} if line == "\n" else {**fields, name: value}
        return None

    def close(self) -> None:
        """Go away."""
        self.answer.close()
        self._connection.close()
