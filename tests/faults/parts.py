"""The whole service as processes of its own, each of which can be killed and started again."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import psutil

from app.db.migrations import upgrade
from app.embedded.postgres import PostgresServer
from app.embedded.processes import die_with_parent, spawn
from app.embedded.state import State
from app.embedded.valkey import ValkeyServer
from tests.benchmarks.acquire import free_port
from tests.faults.voters import Answer, asked

BIN = Path(sys.executable).parent
SETTLED = 0.2
"""Seconds after which a process that was stopped has nothing on its way to the database any more."""
SETTINGS = {
    "ORTHORANK_VOTES_PATIENCE": "1",
    "ORTHORANK_WORKER_SWEEP_SECONDS": "1",
    "ORTHORANK_WORKER_PROCESSES": "1",
    "ORTHORANK_LOG_LEVEL": "warning",
}


class Parts:
    """PostgreSQL with everything that makes a commit last, Valkey, API, worker and beat.

    Parameters
    ----------
    state : a folder that the servers' account can enter.
    """

    def __init__(self, state: State) -> None:
        self._logs = state.logs
        self.postgres = PostgresServer(state, dies_with_parent=True)
        self.valkey = ValkeyServer(state, dies_with_parent=True)
        self.port = free_port()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._commands = {"api": ["api", "--port", str(self.port)], "worker": ["worker"], "beat": ["beat"]}

    def start_servers(self) -> None:
        """Start what keeps the state, with all tables."""
        self.postgres.start()
        self.valkey.start()
        upgrade(self.postgres.url)

    def start(self, *names: str) -> None:
        """Start parts; an API answers when this returns."""
        for name in names:
            command = [str(BIN / "orthorank"), *self._commands[name]]
            log, prepare = self._logs / f"{name}.log", die_with_parent(signal.SIGKILL)
            self._running[name] = spawn(command, log, environment=self.environment, prepare=prepare)
        if "api" in names:
            await_truth(self.answers, seconds=60)

    @property
    def environment(self) -> Mapping[str, str]:
        """What the parts are told."""
        urls = {"ORTHORANK_DATABASE_URL": self.postgres.url, "ORTHORANK_REDIS_URL": self.valkey.url}
        return {**os.environ, **urls, **SETTINGS}

    def answers(self) -> bool:
        """Whether the API is there."""
        try:
            return self.ask("GET", "/healthz").status == 200
        except OSError:
            return False

    def ask(self, method: str, path: str, body: object = None, *, key: str = "") -> Answer:
        """What the API says to a request on a connection of its own."""
        return asked(self.port, method, path, body, key=key)

    def kill(self, *names: str) -> None:
        """End parts without a word."""
        for name in names:
            process = self._running.pop(name)
            process.kill()
            process.wait()

    def runs(self, name: str) -> bool:
        """Whether a part has neither been killed nor ended by itself."""
        return name in self._running and self._running[name].poll() is None

    def end(self) -> None:
        """Kill whatever runs."""
        self.kill(*self._running)
        for server in (self.postgres, self.valkey):
            kill_server(server)


def kill_server(server: PostgresServer | ValkeyServer) -> None:
    """End a server and its processes without a word."""
    if server.pid is None:
        return
    first = psutil.Process(server.pid)
    for process in (first, *first.children(recursive=True)):
        # Those that see their first one dead end by themselves.
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    if server.process is not None:
        server.process.wait()


def strain() -> float:
    """How many times longer work takes while other processes want the processors too."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def await_truth(holds: Callable[[], bool], *, seconds: float) -> float:
    """Seconds until it holds; so many at most where no process waits for a processor."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds * strain(), f"not within {seconds} s"
        time.sleep(0.05)
    return time.monotonic() - began


def lives(pid: int) -> bool:
    """Whether there is such a process that has not ended."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def kill_while(process: subprocess.Popen[Any] | psutil.Process, holds: Callable[[], bool], *, seconds: float) -> None:
    """Kill a process at a moment at which something holds: it stands still while it is looked at."""
    began = time.monotonic()
    while not _caught(process, holds):
        assert time.monotonic() - began < seconds * strain(), f"not within {seconds} s"
        time.sleep(0.005)
    process.kill()
    process.wait()


def _caught(process: subprocess.Popen[Any] | psutil.Process, holds: Callable[[], bool]) -> bool:
    if not holds():
        return False
    process.send_signal(signal.SIGSTOP)
    time.sleep(SETTLED)
    if holds():
        return True
    process.send_signal(signal.SIGCONT)
    return False
