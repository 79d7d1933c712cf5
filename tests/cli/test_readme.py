"""The README's first board, pasted into a shell beside a running service."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson

from tests.cli.running import Up, bare_environment

README = Path(__file__).parents[2] / "README.md"


def script(up: Up) -> str:
    """The shell block, with the test's own port and interpreter."""
    match = re.search(r"^```sh\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)
    assert match is not None
    block = match[1]
    assert "http://localhost:8000" in block
    activate = re.compile(r"^\. \.venv/bin/activate.*$", re.MULTILINE)
    assert activate.search(block)
    command = f'orthorank() {{ {sys.executable} -m app.cli "$@"; }}'
    return activate.sub(lambda _: command, block.replace("http://localhost:8000", up.url))


def test_every_command_of_the_first_board_works(start_up: Callable[..., Up]) -> None:
    up = start_up()
    up.read_until("The board is at")
    environment = bare_environment() | {"ORTHORANK_DATA": str(up.folder)}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script(up)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    whole, english = (orjson.loads(line) for line in done.stdout.strip().splitlines()[-2:])
    assert whole["rankings"][0]["item"] == "ada"
    assert whole["votes"] == 601
    assert english["segment"] == "language:en"
    assert len(english["rankings"]) == 3
