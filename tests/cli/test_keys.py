"""`orthorank key …` on a real database."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

Orthorank = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def orthorank(database_url: str) -> Orthorank:
    """Run the command with the database of this module."""
    environment = {**os.environ, "ORTHORANK_DATABASE_URL": database_url}

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "app.cli", *words]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    return run


def test_a_key_is_printed_alone_and_opens_the_interface(orthorank: Orthorank, client: TestClient) -> None:
    made = orthorank("key", "create", "--scope", "admin", "--name", "operator")
    assert (made.returncode, made.stderr) == (0, "")
    secret = made.stdout.removesuffix("\n")
    assert secret.split() == [secret]
    header = {"Authorization": f"Bearer {secret}"}
    assert client.post("/v1/boards", json={"slug": "own"}, headers=header).status_code == 201

    bound = orthorank("key", "create", "--scope", "read", "--scope", "votes", "--board", "own").stdout.strip()
    lines = [line.split("\t") for line in orthorank("key", "list").stdout.splitlines()]
    assert [line[2:5] for line in lines] == [["admin", "all boards", "operator"], ["read,votes", "own", "-"]]
    assert secret not in str(lines)

    assert orthorank("key", "revoke", lines[1][0]).returncode == 0
    assert client.get("/v1/boards/own", headers={"Authorization": f"Bearer {bound}"}).status_code == 401
    assert len(orthorank("key", "list").stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("create", "--scope", "root"), 2, "root"),
        (("create",), 2, "--scope"),
        (("create", "--scope", "read", "--board", "no-such"), 1, "no board"),
        (("revoke", "12345"), 1, "no such key"),
        (("revoke", "first"), 2, "integer"),
        (("revoke", "99999999999999999999"), 2, "key_id"),
    ],
)
def test_what_cannot_be_done_says_so(orthorank: Orthorank, words: tuple[str, ...], status: int, message: str) -> None:
    done = orthorank("key", *words)
    assert (done.returncode, done.stdout) == (status, "")
    assert message in done.stderr
