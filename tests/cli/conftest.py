"""A running `orthorank up`."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.running import Up, up_in


@pytest.fixture
def data() -> Iterator[Path]:
    """A state folder that the account of the servers can enter."""
    folder = Path(tempfile.mkdtemp(prefix="orthorank-up-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder / "state"
    shutil.rmtree(folder)


@pytest.fixture
def start_up(data: Path) -> Iterator[Callable[..., Up]]:
    """Start `orthorank up` with further words."""
    started: list[Up] = []

    def start(*words: str, **variables: str) -> Up:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        started.append(up_in(data, *words, port=port, **variables))
        return started[-1]

    yield start
    for up in started:
        if up.process.poll() is None:
            up.stop()
        assert up.process.stdout is not None
        up.process.stdout.close()
