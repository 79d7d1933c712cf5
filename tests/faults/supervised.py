"""`orthorank up` as a process, with its parts to be killed one by one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import psutil

from app.embedded.postgres import PostgresServer
from app.embedded.state import locate_state
from tests.benchmarks.acquire import free_port
from tests.cli.running import Up, bare_environment, up_in
from tests.faults.voters import Answer, asked

PARTS = {"api", "worker-live", "worker-refits", "beat", "valkey", "postgres"}


class Supervised:
    """Everything as users run it, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._up: Up | None = None
        self.port = free_port()
        self.postgres = PostgresServer(locate_state(folder))

    def start(self) -> None:
        """Start everything; the API answers when this returns."""
        self._up = up_in(self._folder, port=self.port, ORTHORANK_LOG_LEVEL="warning")
        self._up.read_until("The board is at")

    @property
    def up(self) -> Up:
        """What was started."""
        assert self._up is not None
        return self._up

    @property
    def environment(self) -> Mapping[str, str]:
        """What commands are told to find it."""
        return {**bare_environment(), "ORTHORANK_DATA": str(self._folder)}

    def ask(self, method: str, path: str, body: object = None, *, key: str = "") -> Answer:
        """What the API says to a request on a connection of its own."""
        return asked(self.port, method, path, body, key=key)

    def kill(self, name: str) -> psutil.Process:
        """End the process of a part without a word; those that it started see to themselves."""
        process = self.up.family()[name]
        process.kill()
        return process

    def restart(self) -> None:
        """Kill the supervisor itself, and start anew."""
        self.up.process.kill()
        self.end()
        self.start()

    def runs(self) -> bool:
        """Whether every part does."""
        return self.up.family().keys() >= PARTS

    def end(self) -> None:
        """Stop it, where it runs."""
        if self._up is not None:
            self._up.stop()
            assert self._up.process.stdout is not None
            self._up.process.stdout.close()
