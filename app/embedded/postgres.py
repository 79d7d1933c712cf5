"""PostgreSQL in the state folder: a unix socket in a folder of its own, no TCP, fsync on."""

from __future__ import annotations

import contextlib
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

import psycopg
from psycopg import sql

from app.embedded.errors import NotStarted
from app.embedded.processes import await_ready, die_with_parent, halt, is_running, spawn, tail
from app.embedded.programs import postgres_programs
from app.embedded.state import State

NAME = "orthorank"
_NAMES = ("postgres", "postmaster")
_STATUS_LINE = 7
# Fast shutdown first; a server that hangs is then stopped at once, which a later start recovers from.
_SIGNALS = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))
_START_SECONDS = 300.0
_ORPHANS_SECONDS = 20.0
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "256MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


@dataclass(slots=True)
class PostgresServer:
    """The PostgreSQL server of one state folder.

    Parameters
    ----------
    state : the folder.
    settings : further server settings, for example a cheaper durability in tests.
    dies_with_parent : the server shuts down when this process dies, however it dies (Linux).
    """

    state: State
    settings: Mapping[str, str] = field(default_factory=dict)
    dies_with_parent: bool = False
    name: str = "postgres"
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The libpq URL of the product's database."""
        return self.url_of(NAME)

    def url_of(self, database: str) -> str:
        """Return the libpq URL of any database of the server."""
        return f"postgresql:///{database}?host={quote(str(self.state.sockets), safe='')}&user={NAME}"

    @property
    def pid(self) -> int | None:
        """The process id of the running server."""
        lines = self._pid_file()
        if not lines or not lines[0].strip().isdigit():
            return None
        pid = int(lines[0])
        return pid if is_running(pid, names=_NAMES, folder=self.state.postgres) else None

    def alive(self) -> bool:
        """Tell whether the server runs."""
        return self.pid is not None

    def log_tail(self) -> str:
        """Return the last lines of the log."""
        return tail(self.state.logs / "postgres.log")

    def start(self) -> None:
        """Start the server, or adopt the one that runs.

        Raises
        ------
        EmbeddedError
            when there is no program, the folder does not suit, or the server does not come up.
        """
        with self.state.lock("postgres"):
            while self.alive() and not self._ready():
                time.sleep(0.02)
            if self.alive():
                return
            self._initialise()
            self._launch()
            self._create_database()

    def stop(self) -> None:
        """Stop the server, whoever started it, and wait until it is gone."""
        with self.state.lock("postgres"):
            halt(self.pid, self.process, _SIGNALS)
            self.process = None

    def _pid_file(self) -> list[str]:
        try:
            return (self.state.postgres / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return []

    def _ready(self) -> bool:
        lines = self._pid_file()
        return len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == "ready"

    def _initialise(self) -> None:
        data = self.state.postgres
        if data.exists():
            return
        fresh = data.with_name("postgres.new")
        shutil.rmtree(fresh, ignore_errors=True)
        self.state.own(fresh)
        programs = postgres_programs(self.state)
        command = [str(programs.folder / "initdb"), "-D", str(fresh), "-U", NAME, "--encoding=UTF8", "--locale=C.UTF-8"]
        command += ["--data-checksums", "--auth-local=trust", "--auth-host=reject"]
        log = self.state.logs / "initdb.log"
        if spawn(command, log, account=self.state.account).wait() != 0:
            raise NotStarted(f"PostgreSQL's initdb failed; {log} ends with\n{tail(log)}")
        # Only a finished folder gets the name: an initdb that was killed is done anew.
        fresh.rename(data)

    def _launch(self) -> None:
        programs = postgres_programs(self.state)
        command = [str(programs.folder / "postgres"), "-D", str(self.state.postgres)]
        settings = {**_SETTINGS, **self.settings, "unix_socket_directories": str(self.state.sockets)}
        for key, value in settings.items():
            command += ["-c", f"{key}={value}"]
        log = self.state.logs / "postgres.log"
        prepare = die_with_parent(signal.SIGINT) if self.dies_with_parent else None
        deadline = time.monotonic() + _ORPHANS_SECONDS
        while True:
            self._remove_stale()
            if self.process is not None:
                self.process.wait()
            self.process = spawn(command, log, account=self.state.account, prepare=prepare)
            try:
                await_ready(self._ready, self.process, log, seconds=_START_SECONDS)
            except NotStarted:
                # Processes of a killed server hold its memory for a moment longer.
                if "pre-existing shared memory block" not in tail(log, 4) or time.monotonic() > deadline:
                    raise
                time.sleep(0.2)
            else:
                return

    def _remove_stale(self) -> None:
        """Remove the marks of a server that died: their pid may belong to a stranger by now."""
        sockets = self.state.sockets
        for path in (self.state.postgres / "postmaster.pid", *sockets.glob(".s.PGSQL.*")):
            path.unlink(missing_ok=True)

    def _create_database(self) -> None:
        with (
            psycopg.connect(self.url_of("postgres"), autocommit=True) as connection,
            contextlib.suppress(psycopg.errors.DuplicateDatabase),
        ):
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(NAME)))
