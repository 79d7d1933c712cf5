"""Running the command `orthorank` as a process of its own."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil

from app.embedded.postgres import PostgresServer
from app.embedded.state import locate_state
from app.embedded.valkey import ValkeyServer


@dataclass(slots=True)
class Up:
    """`orthorank up` in a folder and on a port of its own."""

    folder: Path
    port: int
    process: subprocess.Popen[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def read_until(self, word: str) -> list[str]:
        """Return the lines up to the one that holds `word`."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if word in line:
                return lines
        raise AssertionError("".join(lines))

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run another command on the same folder."""
        return orthorank(*words, "--data", str(self.folder))

    def family(self) -> dict[str, psutil.Process]:
        """What it runs, by name; a part that is down may be missing."""
        state = locate_state(self.folder)
        found = {}
        for server in (PostgresServer(state), ValkeyServer(state)):
            # Whatever is there now may end before it is looked at.
            with contextlib.suppress(psutil.NoSuchProcess):
                if (pid := server.pid) is not None:
                    found[server.name] = psutil.Process(pid)
        for child in psutil.Process(self.process.pid).children():
            with contextlib.suppress(psutil.NoSuchProcess):
                words = child.cmdline()
                if "app.cli" in words:
                    name, *more = words[words.index("app.cli") + 1 :]
                    found[f"{name}-{more[1]}" if name == "worker" else name] = child
        return found

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(60)


def up_in(folder: Path, *words: str, port: int, **variables: str) -> Up:
    """Start `orthorank up` with further words and variables."""
    command = [sys.executable, "-m", "app.cli", "up", "--data", str(folder), "--port", str(port), *words]
    environment = {**bare_environment(), **variables}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return Up(folder, port, subprocess.Popen(command, text=True, env=environment, **pipes))


def bare_environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("ORTHORANK_")}


def orthorank(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "app.cli", *words]
    environment = {**bare_environment(), "COLUMNS": "200", **variables}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=300)
