"""The contract's own check against a whole running installation; skipped where the check is not at hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import data, start_up
from tests.cli.running import Up

CHECK = Path(__file__).parents[3] / "shared" / "contract" / "check.py"
THROUGH = "5"

__all__ = ["data", "start_up"]


@pytest.mark.slow
@pytest.mark.skipif(not CHECK.exists(), reason=f"the contract's check is not at {CHECK}")
def test_a_running_installation_keeps_the_contract(start_up: Callable[..., Up]) -> None:
    up = start_up()
    up.read_until("http://")
    key = up.run("key", "create", "--scope", "admin").stdout.strip()
    command = [sys.executable, str(CHECK), up.url, key, "--through", THROUGH]
    found = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
