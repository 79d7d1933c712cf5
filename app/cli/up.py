"""`orthorank up`: everything on one machine, supervised."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from subprocess import PIPE, Popen
from threading import Event
from typing import Annotated

import typer

from app.cli.addresses import Host, Port, environment
from app.cli.options import Data, database_url, settings_in
from app.cli.schema import migrated
from app.cli.supervisor import GRACE, GaveUp, Program, Supervisor
from app.embedded.errors import EmbeddedError
from app.embedded.finding import with_urls
from app.embedded.postgres import PostgresServer
from app.embedded.processes import die_with_parent
from app.embedded.state import State, open_state
from app.embedded.valkey import ValkeyServer
from app.settings import ServerSettings, Settings

commands = typer.Typer()

DEMO = "demo"
"""The command that seeds the demonstration, and the slug of its board."""
TRICKLE = 2.0
"""Votes a second that keep the demonstration moving."""
_LARGEST_LOG = 10 * 2**20

Demo = Annotated[
    bool,
    typer.Option("--demo", help="Make a board named demo with simulated votes that keep coming; print an admin key."),
]


@commands.command()
def up(data: Data = None, host: Host = None, port: Port = None, demonstrate: Demo = False) -> None:
    """Run everything: PostgreSQL and Valkey (unless their URLs are set), API, worker and beat. Ctrl-C stops it."""
    settings = settings_in(data)
    given = {"host": host, "port": port}
    server = settings.server.model_copy(update={name: value for name, value in given.items() if value is not None})
    stop = _stop_on_signals()
    with ExitStack() as stack:
        state = open_state(settings.storage.data)
        stack.enter_context(_alone(state))
        _require_free(server.host, server.port)
        supervisor = Supervisor(_say)
        stack.callback(supervisor.stop)
        ready = _start_servers(supervisor, state, settings)
        _start_programs(supervisor, state, ready, server=server)
        _await_api(supervisor, server, stop)
        if demonstrate and not stop.is_set():
            _start_demo(supervisor, state, ready, stop=stop)
        if not stop.is_set():
            _say(f"The board is at {_address(server)} (logs in {state.logs}; Ctrl-C stops everything)")
        supervisor.watch(stop)
        _say(f"Stopping … (up to {GRACE:.0f} s where a refit is under way)")


def _start_servers(supervisor: Supervisor, state: State, settings: Settings) -> Settings:
    postgres = PostgresServer(state, dies_with_parent=True)
    valkey = ValkeyServer(state, dies_with_parent=True)
    if settings.database.url is None:
        _say(f"Starting PostgreSQL in {state.postgres}")
        supervisor.start(postgres)
    if settings.redis.url is None:
        supervisor.start(valkey)
    ready = with_urls(
        settings,
        database=postgres.url if settings.database.url is None else None,
        redis=valkey.url if settings.redis.url is None else None,
    )
    migrated(database_url(ready))
    return ready


def _start_programs(supervisor: Supervisor, state: State, settings: Settings, *, server: ServerSettings) -> None:
    api = ("api", "--host", server.host, "--port", str(server.port))
    for words in (api, ("worker", "--only", "live"), ("worker", "--only", "refits"), ("beat",)):
        supervisor.start(_program(state, settings, words))


def _start_demo(supervisor: Supervisor, state: State, settings: Settings, *, stop: Event) -> None:
    # A process of its own: the generator needs numerical libraries that this one does without.
    seeding = _program(state, settings, (DEMO,))
    tie = die_with_parent(signal.SIGKILL)
    with Popen(seeding.command, stdout=PIPE, env=seeding.environment, text=True, preexec_fn=tie) as child:
        while child.poll() is None and not stop.wait(0.1):
            supervisor.look()
        if stop.is_set():
            child.terminate()
            return
        key = child.stdout.read().strip() if child.stdout else ""
    if child.returncode != 0:
        raise GaveUp("the demonstration could not be made; its reason stands above")
    supervisor.start(_program(state, settings, ("simulate", DEMO, "--rate", str(TRICKLE))))
    _say(f"Admin key of this demonstration: {key}")


def _program(state: State, settings: Settings, words: tuple[str, ...]) -> Program:
    name = "-".join((words[0], *words[2:])) if words[0] == "worker" else words[0]
    log = state.logs / f"{name}.log"
    if log.exists() and log.stat().st_size > _LARGEST_LOG:
        log.replace(log.with_suffix(".log.1"))
    command = [sys.executable, "-m", "app.cli", *words]
    return Program(name, command, log, {**os.environ, **environment(settings)})


def _await_api(supervisor: Supervisor, server: ServerSettings, stop: Event, *, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    host = "127.0.0.1" if server.host in ("0.0.0.0", "") else "::1" if server.host == "::" else server.host
    while not stop.is_set():
        try:
            socket.create_connection((host, server.port), timeout=1).close()
        except OSError:
            if time.monotonic() > deadline:
                raise GaveUp(f"the API does not answer on port {server.port} within {seconds:.0f} s") from None
            supervisor.look()
            stop.wait(0.1)
        else:
            return


def _require_free(host: str, port: int) -> None:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        choice = "choose another with --port or ORTHORANK_PORT"
        raise GaveUp(f"cannot listen on {host} port {port}: {error.strerror}; {choice}") from error


@contextmanager
def _alone(state: State) -> Iterator[None]:
    """Hold the state folder: one `up` per folder."""
    path = state.root / "up.lock"
    with path.open("a+") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EmbeddedError(
                f"`orthorank up` already runs on {state.root} (process {path.read_text().strip()}): "
                "stop it, or choose another folder with --data"
            ) from None
        handle.truncate(0)
        handle.write(str(os.getpid()))
        handle.flush()
        yield


def _stop_on_signals() -> Event:
    stop = Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: stop.set())
    return stop


def _address(server: ServerSettings) -> str:
    host = "localhost" if server.host in ("127.0.0.1", "0.0.0.0", "::", "::1") else server.host
    return f"http://{host}:{server.port}"


def _say(line: str) -> None:
    print(line, flush=True)
