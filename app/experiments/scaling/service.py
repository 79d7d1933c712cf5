"""The whole service in processes of its own, and a plain client of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import orjson
import psutil

BEGINS = 120.0
"""Seconds within which everything runs."""
IDLE = 1.0
"""Seconds without a request after which a connection is opened anew."""
EVERY = 0.05
"""Seconds between two looks at the memory."""


@dataclass(frozen=True)
class Service:
    """A running service.

    Parameters
    ----------
    port, key : of its API.
    pid : of the process that the others come from.
    """

    port: int
    key: str
    pid: int

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A connection of one's own."""
        with closing(Client(self.port, self.key)) as client:
            yield client

    @contextmanager
    def watched(self) -> Iterator[Memory]:
        """See to the memory of the workers for a while."""
        memory = Memory(self.pid)
        with memory:
            yield memory


class Client:
    """One connection that stays open; without a key it reads what is public."""

    def __init__(self, port: int, key: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=600)
        self._last = time.monotonic()
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    def __call__(self, method: str, path: str, body: Any = None) -> Any:
        """The document that is answered.

        Raises
        ------
        HTTPException
            Where the request is refused.
        """
        if time.monotonic() > self._last + IDLE:
            # The server hangs up on who says nothing.
            self._connection.close()
        self._connection.request(method, f"/v1{path}", None if body is None else orjson.dumps(body), self._headers)
        answer = self._connection.getresponse()
        read, self._last = answer.read(), time.monotonic()
        if answer.status >= 400:
            raise HTTPException(f"{method} {path}: {answer.status} {read[:500].decode()}")
        return orjson.loads(read) if read else None

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


class Memory:
    """The most that a service's workers, and the processes they start, held together.

    Parameters
    ----------
    pid : of the process that the workers come from.
    """

    def __init__(self, pid: int) -> None:
        self._first = psutil.Process(pid)
        self._over = Event()
        self._thread = Thread(target=self._look, daemon=True)
        self.peak = 0

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            self.peak = max(self.peak, self._now())

    def _now(self) -> int:
        total = 0
        for child in self._first.children():
            with suppress(psutil.Error):
                if "refits" in child.cmdline():
                    total += sum(_held(each) for each in (child, *child.children(recursive=True)))
        return total


@contextmanager
def running(processes: int) -> Iterator[Service]:
    """Everything that `orthorank up` starts, in a folder that goes with it.

    Parameters
    ----------
    processes : that a refit may use.
    """
    with TemporaryDirectory(prefix="orthorank-scaling-") as name:
        folder, port = Path(name), _free_port()
        # The account that PostgreSQL runs under reaches its data through it.
        folder.chmod(0o755)
        given = {"ORTHORANK_WORKER_PROCESSES": str(processes), "ORTHORANK_RATE_LIMIT": "0"}
        environment = {**os.environ, **given, "ORTHORANK_DATA": str(folder / "data")}
        command = [sys.executable, "-m", "app.cli"]
        with (folder / "up.log").open("wb") as log:
            words = [*command, "up", "--port", str(port)]
            process = subprocess.Popen(words, env=environment, stdout=log, stderr=log)
        try:
            _await(port, process, folder / "up.log")
            made = subprocess.run(
                [*command, "key", "create", "--scope", "admin"], env=environment, capture_output=True, check=True
            )
            yield Service(port, made.stdout.decode().strip(), process.pid)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    late = time.monotonic() + BEGINS
    while time.monotonic() < late and process.poll() is None:
        with suppress(OSError, HTTPException), closing(Client(port, "")) as client:
            client("GET", "/boards")
            return
        time.sleep(0.2)
    raise RuntimeError(f"the service does not answer:\n{log.read_text()[-2000:]}")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        number: int = found.getsockname()[1]
        return number


def _held(process: psutil.Process) -> int:
    held: int = process.memory_info().rss
    return held
