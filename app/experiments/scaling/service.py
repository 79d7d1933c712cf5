"""The whole service in processes of its own, and a plain client of it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import orjson
import psutil

COMMAND = (sys.executable, "-m", "app.cli")
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
    more : workers of refits beside that.
    """

    port: int
    key: str
    pid: int
    more: tuple[int, ...] = ()

    @contextmanager
    def client(self) -> Iterator[Client]:
        """A connection of one's own."""
        with closing(Client(self.port, self.key)) as client:
            yield client

    @contextmanager
    def watched(self) -> Iterator[Load]:
        """See to the workers of refits for a while."""
        first = [child.pid for child in psutil.Process(self.pid).children() if "refits" in child.cmdline()]
        with Load([*first, *self.more]) as load:
            yield load


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


class Load:
    """The most memory that workers, and the processes they start, held together, and what time they took.

    Parameters
    ----------
    pids : of the workers.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._workers = [psutil.Process(pid) for pid in pids]
        self._over = Event()
        self._thread = Thread(target=self._look, daemon=True)
        self.peak, self.cpu = 0, -self._spent()

    def __enter__(self) -> Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.cpu += self._spent()

    def _look(self) -> None:
        while not self._over.wait(EVERY):
            with suppress(psutil.Error):
                self.peak = max(self.peak, sum(each.memory_info().rss for each in self._processes()))

    def _processes(self) -> Iterator[psutil.Process]:
        for worker in self._workers:
            yield from (worker, *worker.children(recursive=True))

    def _spent(self) -> float:
        """Seconds of processors, those of children that have ended among them."""
        return sum(sum(each.cpu_times()[:4]) for each in self._processes())


@contextmanager
def running(processes: int, workers: int = 1) -> Iterator[Service]:
    """Everything that `orthorank up` starts, in a folder that goes with it, and perhaps more workers of refits.

    Parameters
    ----------
    processes : that a worker may use.
    workers : of refits.
    """
    with TemporaryDirectory(prefix="orthorank-scaling-") as name, ExitStack() as stack:
        folder, port = Path(name), _free_port()
        # The account that PostgreSQL runs under reaches its data through it.
        folder.chmod(0o755)
        given = {"ORTHORANK_WORKER_PROCESSES": str(processes), "ORTHORANK_RATE_LIMIT": "0"}
        environment = {**os.environ, **given, "ORTHORANK_DATA": str(folder / "data")}
        first = stack.enter_context(_program(["up", "--port", str(port)], environment, folder / "up.log"))
        _await(port, first, folder / "up.log")
        more = [folder / f"worker-{number}.log" for number in range(2, workers + 1)]
        words = ["worker", "--only", "refits"]
        others = [stack.enter_context(_program(words, environment, log)) for log in more]
        for log in more:
            _await_words(b" ready", log)
        made = subprocess.run(
            [*COMMAND, "key", "create", "--scope", "admin"], env=environment, capture_output=True, check=True
        )
        yield Service(port, made.stdout.decode().strip(), first.pid, tuple(each.pid for each in others))


@contextmanager
def _program(words: Sequence[str], environment: Mapping[str, str], path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with path.open("wb") as log:
        process = subprocess.Popen([*COMMAND, *words], env=environment, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _await_words(words: bytes, log: Path) -> None:
    late = time.monotonic() + BEGINS
    while words not in log.read_bytes():
        if time.monotonic() > late:
            raise RuntimeError(f"a worker does not start:\n{log.read_text()[-2000:]}")
        time.sleep(0.1)


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
