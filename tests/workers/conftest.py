"""Workers as real processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def start(database_url: str, redis_url: str, tmp_path: Path) -> Iterator[Start]:
    """Start a command of the worker with settings of its own; whatever still runs at the end is killed.

    What it logs is in a file called by `log`.
    """
    running: list[subprocess.Popen[bytes]] = []
    urls = {"ORTHORANK_DATABASE_URL": database_url, "ORTHORANK_REDIS_URL": redis_url}
    environment = {**os.environ, **urls, "ORTHORANK_WORKER_SWEEP_SECONDS": "1"}

    def begin(*words: str, log: str = "log", **settings: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "app.cli", *words]
        with (tmp_path / log).open("ab") as lines:
            running.append(subprocess.Popen(command, cwd=ROOT, env={**environment, **settings}, stderr=lines))
        return running[-1]

    yield begin
    for process in running:
        process.kill()
        process.wait()
