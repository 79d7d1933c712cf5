"""What goes wrong is one message and an exit status, never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import orthorank


def test_a_folder_in_which_nothing_runs(tmp_path: Path) -> None:
    done = orthorank("env", "--data", str(tmp_path / "none"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "start `orthorank up`" in done.stderr
    assert "ORTHORANK_DATABASE_URL and ORTHORANK_REDIS_URL" in done.stderr


def test_a_bad_setting_is_a_usage_error() -> None:
    done = orthorank("env", ORTHORANK_PORT="none")
    assert done.returncode == 2
    assert done.stderr.startswith("orthorank: ORTHORANK_PORT='none': ")


def test_a_database_that_does_not_answer() -> None:
    done = orthorank("migrate", ORTHORANK_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert done.returncode == 1
    assert "the database does not answer" in done.stderr
    assert "Traceback" not in done.stderr


def test_doctor_names_what_does_not_answer_and_how_to_mend_it(tmp_path: Path) -> None:
    done = orthorank(
        "doctor",
        "--data",
        str(tmp_path),
        ORTHORANK_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none",
        ORTHORANK_REDIS_URL="redis://127.0.0.1:1/0",
    )
    assert done.returncode == 1
    assert "MISSING database" in done.stdout
    assert "check ORTHORANK_REDIS_URL" in done.stdout


@pytest.mark.parametrize("module", ["up", "addresses", "beat"])
def test_commands_that_do_not_serve_do_not_wait_for_the_api_to_be_imported(module: str) -> None:
    code = f"import sys, app.cli.{module}; print(*{{'app.main', 'fastapi', 'lightgbm'}} & sys.modules.keys())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
