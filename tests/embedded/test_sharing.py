"""The last user of a server stops it, and other processes find it by its folder."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from app.embedded.finding import with_embedded
from app.embedded.postgres import PostgresServer
from app.embedded.sharing import in_use
from app.embedded.state import State
from app.embedded.valkey import ValkeyServer
from app.settings import Settings, load_settings

USE = """
import sys
from pathlib import Path
from app.embedded.postgres import PostgresServer
from app.embedded.sharing import in_use
from app.embedded.state import open_state
with in_use(PostgresServer(open_state(Path(sys.argv[1])))):
    print("in use", flush=True)
    sys.stdin.readline()
"""


def settings_of(state: State, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.delenv("ORTHORANK_DATABASE_URL", raising=False)
    monkeypatch.delenv("ORTHORANK_REDIS_URL", raising=False)
    monkeypatch.setenv("ORTHORANK_DATA", str(state.root))
    return load_settings()


@pytest.mark.parametrize("killed", [False, True])
def test_the_last_user_stops_the_server(postgres: PostgresServer, killed: bool) -> None:
    command = [sys.executable, "-c", USE, str(postgres.state.root)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "in use\n"
        with in_use(postgres):
            if killed:
                other.kill()
            else:
                other.communicate("\n")
            other.wait()
            assert postgres.alive()
    assert not postgres.alive()


def test_an_earlier_user_leaves_it_running(postgres: PostgresServer) -> None:
    with in_use(PostgresServer(postgres.state)):
        with in_use(postgres):
            pass
        assert postgres.alive()
    assert not postgres.alive()


def test_a_starter_that_is_not_the_last_leaves_without_a_warning(postgres: PostgresServer) -> None:
    starter = PostgresServer(postgres.state)
    with in_use(starter):
        command = [sys.executable, "-c", USE, str(postgres.state.root)]
        other = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert other.stdout is not None
        assert other.stdout.readline() == "in use\n"
    with other:
        # A handle that is still open warns when it is collected, and a warning is an error here.
        del starter
        gc.collect()
        assert postgres.alive()
        other.communicate("\n")
    assert not postgres.alive()


def test_running_servers_are_found_by_their_folder(
    postgres: PostgresServer, valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(postgres.state, monkeypatch)
    found = with_embedded(settings)
    assert (found.database.url, found.redis.url) == (None, None)
    postgres.start()
    valkey.start()
    found = with_embedded(settings)
    assert (found.database.url, found.redis.url) == (postgres.url, valkey.url)


def test_a_url_that_is_set_wins(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    settings_of(postgres.state, monkeypatch)
    monkeypatch.setenv("ORTHORANK_DATABASE_URL", "postgresql://elsewhere/x")
    postgres.start()
    assert with_embedded(load_settings()).database.url == "postgresql://elsewhere/x"


def test_a_folder_that_is_not_there_has_no_server(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORTHORANK_DATA", str(folder / "nowhere"))
    found = with_embedded(load_settings())
    assert found.database.url is None
    assert not (folder / "nowhere").exists()
