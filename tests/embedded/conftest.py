"""State folders that the account of the servers can enter, and servers that are stopped whatever happens."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.embedded.postgres import PostgresServer
from app.embedded.state import State, open_state
from app.embedded.valkey import ValkeyServer


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every account may enter, unlike pytest's own."""
    made = Path(tempfile.mkdtemp(prefix="orthorank-embedded-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def state(folder: Path) -> State:
    return open_state(folder / "state")


@pytest.fixture(scope="session")
def pristine() -> Iterator[Path]:
    """A data folder fresh from initdb, which takes most of the time of a first start."""
    made = Path(tempfile.mkdtemp(prefix="orthorank-pristine-", dir="/tmp"))
    made.chmod(0o755)
    state = open_state(made / "state")
    server = PostgresServer(state)
    server.start()
    server.stop()
    yield state.postgres
    shutil.rmtree(made)


@pytest.fixture
def postgres(state: State, pristine: Path) -> Iterator[PostgresServer]:
    subprocess.run(["cp", "-a", pristine, state.postgres], check=True)
    server = PostgresServer(state)
    yield server
    server.stop()


@pytest.fixture
def valkey(state: State) -> Iterator[ValkeyServer]:
    server = ValkeyServer(state)
    yield server
    server.stop()
