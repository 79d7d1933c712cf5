"""Several processes on one server: the last one to leave stops it, however the others ended."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from app.embedded.postgres import PostgresServer
from app.embedded.valkey import ValkeyServer


@contextmanager
def in_use(server: PostgresServer | ValkeyServer) -> Iterator[str]:
    """Start or adopt `server`, yield its URL, and stop it when nobody else holds it.

    Every user holds a shared file lock, which the kernel drops when a process dies.
    """
    with (server.state.root / f"{server.name}.users").open("a") as users:
        fcntl.flock(users, fcntl.LOCK_SH)
        server.start()
        try:
            yield server.url
        finally:
            if _alone(users):
                server.stop()
            elif server.process is not None:
                # It goes on for the others. Left open, the handle would warn of a child that nobody waited for.
                server.process.returncode = 0


def _alone(users: TextIO) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
