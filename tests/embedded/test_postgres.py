"""Our launcher of PostgreSQL against everything that a crash or a second start can leave."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import psutil
import psycopg
import pytest

from app.embedded.errors import BadFolder, NotStarted
from app.embedded.postgres import PostgresServer
from app.embedded.state import State, open_state
from tests.faults.parts import lives

START = """
import sys
from pathlib import Path
from app.embedded.postgres import PostgresServer
from app.embedded.state import open_state
server = PostgresServer(open_state(Path(sys.argv[1])))
server.start()
print(server.pid)
"""


def setting(url: str, name: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute(f"SHOW {name}").fetchone()
        assert row is not None
        return str(row[0])


def await_gone(pid: int, seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while lives(pid):
        assert time.monotonic() < deadline, f"process {pid} lives on"
        time.sleep(0.02)


def test_it_is_durable_unreachable_from_outside_and_checks_its_pages(postgres: PostgresServer) -> None:
    postgres.start()
    assert setting(postgres.url, "fsync") == "on"
    assert setting(postgres.url, "synchronous_commit") == "on"
    assert setting(postgres.url, "data_checksums") == "on"
    assert setting(postgres.url, "listen_addresses") == ""
    with psycopg.connect(postgres.url) as connection:
        collation = connection.execute("SELECT datcollate FROM pg_database WHERE datname = current_database()")
        assert collation.fetchone() == ("C.UTF-8",)
    pid = postgres.pid
    assert pid is not None
    assert [found for found in psutil.Process(pid).net_connections("inet") if found.status == "LISTEN"] == []
    assert stat.S_IMODE(postgres.state.sockets.stat().st_mode) == 0o700


def test_a_clean_stop_leaves_no_process_and_no_socket(postgres: PostgresServer) -> None:
    postgres.start()
    pid = postgres.pid
    assert pid is not None
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    postgres.stop()
    assert not any(process.is_running() for process in family)
    assert list(postgres.state.sockets.iterdir()) == []
    assert not postgres.alive()


def test_a_second_start_adopts_the_server(postgres: PostgresServer) -> None:
    postgres.start()
    other = PostgresServer(postgres.state)
    other.start()
    assert other.pid == postgres.pid
    other.stop()
    assert not postgres.alive()


def test_four_starts_at_once_give_one_server(postgres: PostgresServer) -> None:
    command = [sys.executable, "-c", START, str(postgres.state.root)]
    starts = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    pids = {start.communicate(timeout=120)[0].strip() for start in starts}
    assert [start.returncode for start in starts] == [0] * 4
    assert pids == {str(postgres.pid)}


def test_a_killed_server_loses_no_acknowledged_row(postgres: PostgresServer) -> None:
    postgres.start()
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE votes (number int PRIMARY KEY)")
    acknowledged: list[int] = []

    def write() -> None:
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            for number in range(1_000_000):
                connection.execute("INSERT INTO votes VALUES (%s)", (number,))
                acknowledged.append(number)

    def write_until_cut() -> None:
        with pytest.raises(psycopg.OperationalError):
            write()

    writer = Thread(target=write_until_cut)
    writer.start()
    while len(acknowledged) < 200:
        time.sleep(0.01)
    pid = postgres.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    writer.join()
    postgres.start()
    with psycopg.connect(postgres.url) as connection:
        kept = {number for (number,) in connection.execute("SELECT number FROM votes")}
    assert set(acknowledged) <= kept


@pytest.mark.parametrize("kind", ["stranger", "zombie", "nobody"])
def test_a_stale_pid_file_does_not_stop_a_start(postgres: PostgresServer, kind: str) -> None:
    postgres.start()
    postgres.stop()
    child = subprocess.Popen(["sleep", "0" if kind == "zombie" else "60"])
    if kind == "zombie":
        while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
    elif kind == "nobody":
        child.kill()
        child.wait()
    file = postgres.state.postgres / "postmaster.pid"
    file.write_text(f"{child.pid}\n{postgres.state.postgres}\n1\n5432\n\n\n\nready\n")
    (postgres.state.sockets / ".s.PGSQL.5432.lock").write_text(f"{child.pid}\n")
    assert not postgres.alive()
    postgres.start()
    assert postgres.pid != child.pid
    assert child.poll() is None or kind != "stranger"
    child.kill()
    child.wait()


def test_an_initdb_that_was_cut_short_is_done_anew(state: State) -> None:
    left = state.root / "postgres.new"
    state.own(left)
    (left / "rest").write_text("half")
    server = PostgresServer(state)
    server.start()
    try:
        assert not left.exists()
        assert setting(server.url, "server_encoding") == "UTF8"
    finally:
        server.stop()


def test_a_server_that_cannot_start_says_why(postgres: PostgresServer) -> None:
    postgres.settings = {"shared_buffers": "nonsense"}
    with pytest.raises(NotStarted, match='invalid value for parameter "shared_buffers"'):
        postgres.start()


def test_it_shuts_down_when_its_starter_is_killed(postgres: PostgresServer) -> None:
    lines = START.replace("open_state(Path(sys.argv[1]))", "open_state(Path(sys.argv[1])), dies_with_parent=True")
    command = [
        sys.executable,
        "-c",
        lines + "sys.stdout.flush(); import time; time.sleep(60)",
        str(postgres.state.root),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        assert postgres.pid == pid
        starter.kill()
    await_gone(pid)


def test_a_path_too_long_for_a_socket_gets_a_short_one(folder: Path) -> None:
    state = open_state(folder / ("deep" * 30))
    server = PostgresServer(state)
    server.start()
    try:
        assert setting(server.url, "unix_socket_directories") == str(state.sockets)
        assert state.sockets.parent == Path("/tmp")
    finally:
        server.stop()
        state.sockets.rmdir()


def test_a_folder_that_is_open_to_others_is_refused(folder: Path) -> None:
    state = open_state(folder / "state")
    state.valkey.chmod(0o755)
    with pytest.raises(BadFolder, match="chmod 700"):
        open_state(state.root)


def test_a_file_in_place_of_the_folder_is_refused(folder: Path) -> None:
    (folder / "file").write_text("")
    with pytest.raises(BadFolder, match="is not a folder"):
        open_state(folder / "file")


def test_locks_take_turns(state: State) -> None:
    taken: list[str] = []

    def second() -> None:
        with State(state.root, state.account).lock("turn"):
            taken.append("second")

    with state.lock("turn"):
        other = Thread(target=second)
        other.start()
        time.sleep(0.1)
        taken.append("first")
    other.join()
    assert taken == ["first", "second"]
