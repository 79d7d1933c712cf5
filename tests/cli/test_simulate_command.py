"""`orthorank simulate` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import psycopg
import pytest

MakeDatabase = Callable[[], str]


@pytest.fixture
def url(make_migrated_database: MakeDatabase) -> str:
    return make_migrated_database()


def start(url: str, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "app.cli", "simulate", *words],
        env={**os.environ, "ORTHORANK_DATABASE_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(url: str, *words: str) -> tuple[int | None, str, str]:
    process = start(url, *words)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


def stored(url: str) -> int:
    with psycopg.connect(url) as connection:
        return connection.execute("SELECT count(*) FROM votes").fetchall()[0][0]


def test_a_new_board_is_made_and_equal_seeds_count_once(url: str) -> None:
    assert run(url, "sim", "--votes", "30", "--items", "3", "--seed", "4")[:2] == (0, "30 created\n")
    assert run(url, "sim", "--votes", "30", "--seed", "4")[:2] == (0, "30 duplicate\n")
    assert stored(url) == 30


def test_with_a_rate_it_goes_on_until_it_is_told_to_stop(url: str) -> None:
    process = start(url, "sim", "--rate", "50")
    for _ in range(200):
        if stored(url) >= 5:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert out == f"{stored(url)} created\n"


def test_a_board_that_cannot_be_made_is_one_line_and_status_1(url: str) -> None:
    status, out, err = run(url, "no spaces", "--votes", "5")
    assert (status, out) == (1, "")
    assert err.startswith("orthorank: slug")
    assert err.count("\n") == 1


def test_bad_usage_is_status_2(url: str) -> None:
    assert run(url, "sim", "--votes", "0")[0] == 2


def test_the_help_says_units_and_defaults(url: str) -> None:
    _, out, _ = run(url, "--help")
    assert "Votes a second" in out
    assert "Default: 1000" in " ".join(out.split())
