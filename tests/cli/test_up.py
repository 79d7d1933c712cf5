"""`orthorank up` end to end: what is killed comes back, and a stop leaves nothing."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import psycopg
import pytest
from redis import Redis

from app.embedded.postgres import PostgresServer
from app.embedded.state import locate_state
from tests.cli.running import Up, orthorank
from tests.faults.parts import lives

pytestmark = pytest.mark.slow


def healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=10).status_code == 200
    except httpx.TransportError:
        return False


def until(holds: Callable[[], bool], seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_everything_that_is_killed_comes_back_and_a_stop_leaves_nothing(start_up: Callable[..., Up]) -> None:
    up = start_up()
    assert f"http://localhost:{up.port}" in up.read_until("The board is at")[-1]
    until(lambda: healthy(up.url))
    assert set(up.family()) == {"postgres", "valkey", "api", "worker-live", "worker-refits", "beat"}
    for name, process in up.family().items():
        process.kill()
        up.read_until(f"{name} runs again")
    until(lambda: healthy(up.url))
    everyone = [*psutil.Process(up.process.pid).children(recursive=True), psutil.Process(up.family()["postgres"].pid)]
    assert up.stop(signal.SIGINT) == 0
    assert not any(process.is_running() for process in everyone)
    assert list(locate_state(up.folder).sockets.iterdir()) == []


def test_a_killed_supervisor_leaves_nothing_and_the_next_start_finds_it_whole(start_up: Callable[..., Up]) -> None:
    up = start_up()
    up.read_until("The board is at")
    everyone = psutil.Process(up.process.pid).children(recursive=True)
    up.process.kill()
    up.process.wait()
    until(lambda: not any(lives(process.pid) for process in everyone))
    server = PostgresServer(locate_state(up.folder))
    server.start()
    try:
        with psycopg.connect(server.url) as connection:
            assert connection.execute("SELECT count(*) FROM boards").fetchone() == (0,)
    finally:
        server.stop()


def test_other_commands_find_the_servers_by_the_folder(start_up: Callable[..., Up]) -> None:
    up = start_up()
    up.read_until("The board is at")
    exported = up.run("env").stdout
    script = f"{exported}\nenv"
    shell = subprocess.run(["sh", "-c", script], capture_output=True, text=True, env={}, check=True).stdout
    variables = dict(line.split("=", 1) for line in shell.splitlines())
    with psycopg.connect(variables["ORTHORANK_DATABASE_URL"]) as connection:
        assert connection.info.dbname == variables["PGDATABASE"] == "orthorank"
    with psycopg.connect(f"host={variables['PGHOST']} user={variables['PGUSER']} dbname=orthorank") as connection:
        assert connection.execute("SELECT count(*) FROM boards").fetchone() == (0,)
    with Redis.from_url(variables["ORTHORANK_REDIS_URL"]) as client:
        assert client.ping()
    assert orthorank("migrate", ORTHORANK_DATA=str(up.folder)).returncode == 0
    looked = up.run("doctor")
    assert (looked.returncode, "MISSING" in looked.stdout) == (0, False)
    assert "database: reached" in looked.stdout
    second = up.run("up", "--port", "1")
    assert second.returncode == 1
    assert f"already runs on {up.folder} (process {up.process.pid})" in second.stderr


def test_a_taken_port_stops_the_start_before_anything_runs(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = orthorank("up", "--data", str(data), "--port", str(port))
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1 port {port}" in done.stderr
    assert "ORTHORANK_PORT" in done.stderr
    assert not PostgresServer(locate_state(data)).alive()


def test_servers_that_are_configured_are_used(
    start_up: Callable[..., Up], make_migrated_database: Callable[[], str], redis_url: str
) -> None:
    up = start_up(ORTHORANK_DATABASE_URL=make_migrated_database(), ORTHORANK_REDIS_URL=redis_url)
    up.read_until("The board is at")
    until(lambda: healthy(up.url))
    state = locate_state(up.folder)
    assert not PostgresServer(state).alive()
    assert not (state.valkey / "valkey.conf").exists()
