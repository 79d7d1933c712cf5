"""Valkey in the state folder: loopback, a port and a password of its own, every write in an append-only file.

TCP rather than a unix socket, since one redis:// URL then serves redis-py, Celery and redis-cli alike.
"""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from redis import Redis
from redis.exceptions import RedisError

from app.embedded.processes import await_ready, die_with_parent, halt, is_running, spawn, tail
from app.embedded.programs import valkey_program
from app.embedded.state import State

_NAMES = ("valkey-server", "redis-server")
_SIGNALS = ((signal.SIGTERM, 30.0), (signal.SIGKILL, 5.0))
_START_SECONDS = 60.0
_HOST = "127.0.0.1"
# Below the range that the kernel hands to outgoing connections, so that a restart finds its port free.
_FIRST_PORT, _LAST_PORT = 20_000, 32_000


@dataclass(slots=True)
class ValkeyServer:
    """The Valkey server of one state folder.

    Parameters
    ----------
    state : the folder.
    dies_with_parent : the server shuts down when this process dies, however it dies (Linux).
    """

    state: State
    dies_with_parent: bool = False
    name: str = "valkey"
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """The redis:// URL, password included."""
        known = self._configured()
        return f"redis://:{known['requirepass']}@{_HOST}:{known['port']}/0"

    @property
    def pid(self) -> int | None:
        """The process id of the running server."""
        try:
            pid = int((self.state.valkey / "valkey.pid").read_text())
        except (FileNotFoundError, ValueError):
            return None
        return pid if is_running(pid, names=_NAMES, folder=self.state.valkey) else None

    def alive(self) -> bool:
        """Tell whether the server runs."""
        return self.pid is not None

    def log_tail(self) -> str:
        """Return the last lines of the log."""
        return tail(self.state.logs / "valkey.log")

    def start(self) -> None:
        """Start the server, or adopt the one that runs.

        Raises
        ------
        EmbeddedError
            when there is no program, or the server does not come up.
        """
        with self.state.lock("valkey"):
            while self.alive() and not self._answers():
                time.sleep(0.02)
            if not self.alive():
                self._launch()

    def stop(self) -> None:
        """Stop the server, whoever started it, and wait until it is gone."""
        with self.state.lock("valkey"):
            halt(self.pid, self.process, _SIGNALS)
            self.process = None

    @property
    def _configuration(self) -> Path:
        return self.state.valkey / "valkey.conf"

    def _launch(self) -> None:
        if self.process is not None:
            self.process.wait()
        program = valkey_program(self.state)
        (self.state.valkey / "valkey.pid").unlink(missing_ok=True)
        self._configure()
        log = self.state.logs / "valkey.log"
        prepare = die_with_parent(signal.SIGTERM) if self.dies_with_parent else None
        self.process = spawn([str(program), str(self._configuration)], log, account=self.state.account, prepare=prepare)
        await_ready(self._answers, self.process, log, seconds=_START_SECONDS)

    def _configure(self) -> None:
        known = self._configured() if self._configuration.exists() else {}
        port = int(known.get("port", 0))
        if not _is_free(port):
            port = _free_port()
        password = known.get("requirepass") or secrets.token_urlsafe(24)
        lines = [
            f"bind {_HOST}",
            f"port {port}",
            f"requirepass {password}",
            f'dir "{self.state.valkey}"',
            f'pidfile "{self.state.valkey / "valkey.pid"}"',
            "appendonly yes",
            "daemonize no",
            'save ""',
        ]
        self._configuration.unlink(missing_ok=True)
        handle = os.open(self._configuration, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write("\n".join(lines) + "\n")
        if self.state.account.switch:
            os.chown(self._configuration, self.state.account.uid, self.state.account.gid)

    def _configured(self) -> dict[str, str]:
        lines = self._configuration.read_text().splitlines()
        return dict(line.split(" ", 1) for line in lines)

    def _answers(self) -> bool:
        try:
            with Redis.from_url(self.url, socket_timeout=5, retry=None) as client:
                return bool(client.ping())
        except RedisError:
            return False


def _free_port() -> int:
    while True:
        port = _FIRST_PORT + secrets.randbelow(_LAST_PORT - _FIRST_PORT)
        if _is_free(port):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((_HOST, port))
        except OSError:
            return False
    return port > 0
