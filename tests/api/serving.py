"""The API behind a real uvicorn in a thread, and readers on real sockets."""

from __future__ import annotations

import http.client
import json
import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn
from starlette.types import ASGIApp


@contextmanager
def listening(app: ASGIApp, **options: Any) -> Iterator[int]:
    """Serve an application on a free port; the port."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1, **options))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


class Reply(NamedTuple):
    """An answer as it came over the wire; header names as they were written, in order."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def header(self, name: str) -> str | None:
        """The value of a header, if it is there."""
        return dict(self.headers).get(name)


class Wire:
    """A connection of which every byte is seen."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._coming = self._socket.makefile("rb")

    def send(self, *pieces: bytes, pause: float = 0.02) -> None:
        """Send pieces, each of which arrives on its own."""
        for number, piece in enumerate(pieces):
            time.sleep(pause if number else 0)
            self._socket.sendall(piece)

    def reply(self) -> Reply:
        """The next answer."""
        status = int(self.line().split()[1])
        lines = iter(self.line, "")
        headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines)]
        return Reply(status, headers, self._coming.read(int(dict(headers).get("content-length", "0"))))

    def line(self) -> str:
        """The next line."""
        return self._coming.readline().decode("latin-1").removesuffix("\r\n")

    def waits(self, seconds: float) -> bool:
        """Whether something comes, or the connection ends, within some seconds."""
        return bool(select.select([self._socket], [], [], seconds)[0])

    def goes_on(self) -> bool:
        """Whether the other side has not closed the connection; what came from it is gone."""
        while self.waits(0):
            if not self._socket.recv(65_536):
                return False
        return True

    def ended(self) -> bool:
        """Whether the other side sends nothing more and has closed the connection."""
        return self._coming.read() == b""

    def close(self) -> None:
        """Go away."""
        self._coming.close()
        self._socket.close()


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
