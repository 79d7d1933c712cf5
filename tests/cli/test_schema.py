"""Processes that serve look at the schema of the database before they start."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psycopg
import pytest

from app.db.migrations import downgrade
from tests.benchmarks.acquire import free_port
from tests.cli.running import bare_environment, orthorank

WAY = "run `orthorank migrate`"


def made_newer(url: str) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")


@pytest.mark.parametrize("command", ["api", "worker"])
def test_a_database_that_lacks_migrations_ends_the_start(
    make_migrated_database: Callable[[], str], redis_url: str, command: str
) -> None:
    url = make_migrated_database()
    downgrade(url, "0008")
    done = orthorank(command, ORTHORANK_DATABASE_URL=url, ORTHORANK_REDIS_URL=redis_url)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("orthorank: the database has schema 0008, and this version is made for ")
    assert line.endswith(WAY)


def test_a_database_without_tables_ends_the_start(make_database: Callable[[], str], redis_url: str) -> None:
    done = orthorank("api", ORTHORANK_DATABASE_URL=make_database(), ORTHORANK_REDIS_URL=redis_url)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "the database has no schema" in done.stderr
    assert WAY in done.stderr


def test_a_newer_database_is_served_on_with_a_warning(
    make_migrated_database: Callable[[], str], redis_url: str, tmp_path: Path
) -> None:
    url, port = make_migrated_database(), free_port()
    made_newer(url)
    servers = {"ORTHORANK_DATABASE_URL": url, "ORTHORANK_REDIS_URL": redis_url}
    command = [sys.executable, "-m", "app.cli", "api", "--port", str(port)]
    with (tmp_path / "log").open("wb") as log:
        api = subprocess.Popen(command, env={**bare_environment(), **servers}, stderr=log)
    try:
        assert statuses(port, "/healthz", "/v1/boards", "/readyz") == [200, 200, 503]
    finally:
        api.terminate()
        api.wait(30)
    said = (tmp_path / "log").read_text().splitlines()
    assert said[0].startswith("orthorank: the database has schema 9999, ")
    assert said[0].endswith("install the version that made it")


def test_a_newer_database_is_not_migrated(make_migrated_database: Callable[[], str]) -> None:
    url = make_migrated_database()
    made_newer(url)
    done = orthorank("migrate", ORTHORANK_DATABASE_URL=url)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "schema 9999" in done.stderr


def statuses(port: int, *paths: str) -> list[int]:
    """How each of the paths is answered, by an API that may have to start first."""
    for _ in range(300):
        try:
            return [httpx.get(f"http://127.0.0.1:{port}{path}", timeout=10).status_code for path in paths]
        except httpx.TransportError:
            time.sleep(0.2)
    raise AssertionError("it does not start")
