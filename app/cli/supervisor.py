"""Keeping a set of services running: restart with a back-off, give up with the last log lines, stop cleanly."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Protocol

from app.embedded.errors import EmbeddedError
from app.embedded.processes import die_with_parent, halt, spawn, tail

GRACE = 20.0
"""Seconds in which a process may end what it is at."""
_SIGNALS = ((signal.SIGTERM, GRACE), (signal.SIGKILL, 5.0))


class GaveUp(Exception):
    """A service stopped again and again."""


class Service(Protocol):
    """Something that runs: an embedded server or a program."""

    @property
    def name(self) -> str:
        """What messages call it."""
        ...

    def start(self) -> None:
        """Start it; return when it runs."""
        ...

    def alive(self) -> bool:
        """Tell whether it runs."""
        ...

    def stop(self) -> None:
        """Stop it and wait until it is gone."""
        ...

    def log_tail(self) -> str:
        """Return the last lines of its log."""
        ...


@dataclass(slots=True)
class Program:
    """A child process that writes to a log file and is killed by the kernel when this process dies."""

    name: str
    command: Sequence[str]
    log: Path
    environment: Mapping[str, str]
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process."""
        # What it does is safe to cut short: votes and jobs are in PostgreSQL.
        prepare = die_with_parent(signal.SIGKILL)
        self.process = spawn(self.command, self.log, prepare=prepare, environment=self.environment)

    def alive(self) -> bool:
        """Tell whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def stop(self) -> None:
        """Stop the process, and whatever it left in its session."""
        if self.process is None:
            return
        halt(self.process.pid, self.process, _SIGNALS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process = None

    def log_tail(self) -> str:
        """Return the last lines of the log."""
        return tail(self.log)


@dataclass(frozen=True, slots=True)
class Patience:
    """How a service that stops is treated: waits in seconds, doubled from `first` to `longest`.

    After `failures` stops in a row, none of which followed `healthy` seconds of running, it is given up.
    """

    first: float = 0.5
    longest: float = 30.0
    healthy: float = 60.0
    failures: int = 5

    def wait(self, failures: int) -> float:
        """Return the seconds to wait after so many failures in a row."""
        return float(min(self.longest, self.first * 2 ** (failures - 1)))


@dataclass(slots=True)
class _Watched:
    service: Service
    started: float
    failures: int = 0
    due: float | None = None


@dataclass(slots=True)
class Supervisor:
    """Runs services in the given order and stops them in the reverse one.

    Parameters
    ----------
    say : receives one line per event.
    patience : when a service that stops is restarted or given up.
    """

    say: Callable[[str], None]
    patience: Patience = field(default_factory=Patience)
    watched: list[_Watched] = field(default_factory=list)

    def start(self, service: Service) -> None:
        """Start a service and watch it from now on."""
        self.watched.append(_Watched(service, time.monotonic()))
        service.start()

    def watch(self, stop: Event, *, pause: float = 0.2) -> None:
        """Keep the services running until `stop` is set.

        Raises
        ------
        GaveUp
            when one stops again and again; the message ends with the last lines of its log.
        """
        while not stop.wait(pause):
            self.look()

    def look(self) -> None:
        """Look at each service once, and restart those whose wait is over."""
        for watched in self.watched:
            now = time.monotonic()
            if watched.due is not None and now >= watched.due:
                self._restart(watched)
            elif watched.due is None and not watched.service.alive():
                self._failed(watched, now)

    def stop(self) -> None:
        """Stop every service, the last one first."""
        while self.watched:
            self.watched.pop().service.stop()

    def _restart(self, watched: _Watched) -> None:
        watched.started, watched.due = time.monotonic(), None
        try:
            watched.service.start()
        except EmbeddedError as error:
            self.say(f"{watched.service.name}: {error}")
        else:
            self.say(f"{watched.service.name} runs again")

    def _failed(self, watched: _Watched, now: float) -> None:
        healthy = now - watched.started >= self.patience.healthy
        watched.failures = 1 if healthy else watched.failures + 1
        name = watched.service.name
        if watched.failures > self.patience.failures:
            raise GaveUp(
                f"{name} stopped {watched.failures} times in a row; its log ends with\n{watched.service.log_tail()}"
            )
        wait = self.patience.wait(watched.failures)
        watched.due = now + wait
        self.say(f"{name} stopped; it is started again in {wait:.1f} s")
