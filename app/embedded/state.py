"""The state folder: one subfolder per server, logs, and the folder of the sockets."""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.embedded.accounts import Account, require_way, service_account
from app.embedded.errors import BadFolder

# A socket's path has to fit the kernel's sockaddr_un, its closing zero included.
SOCKET_LIMIT = 108 if sys.platform == "linux" else 104
SOCKET_NAME = ".s.PGSQL.5432"


@dataclass(frozen=True, slots=True)
class State:
    """Where the servers of one `orthorank up` keep what they own."""

    root: Path
    account: Account

    @property
    def postgres(self) -> Path:
        """The data folder of PostgreSQL."""
        return self.root / "postgres"

    @property
    def valkey(self) -> Path:
        """The data folder of Valkey."""
        return self.root / "valkey"

    @property
    def logs(self) -> Path:
        """One log file per server and process."""
        return self.root / "logs"

    @property
    def programs(self) -> Path:
        """Copies of programs that the account could not reach where they are installed."""
        return self.root / "programs"

    @property
    def sockets(self) -> Path:
        """The folder of PostgreSQL's socket: in the state folder unless the path would be too long for one."""
        inside = self.root / "run"
        if len(os.fsencode(inside / SOCKET_NAME)) < SOCKET_LIMIT:
            return inside
        digest = hashlib.sha256(os.fsencode(self.root)).hexdigest()[:16]
        return Path("/tmp") / f"orthorank-{digest}"

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the file lock `name`; processes that start at once take turns."""
        with (self.root / f"{name}.lock").open("a") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def own(self, folder: Path) -> None:
        """Make `folder` with mode 0700 for the account of the servers, or refuse one that belongs to another."""
        if not folder.exists():
            folder.mkdir(mode=0o700)
            if self.account.switch:
                os.chown(folder, self.account.uid, self.account.gid)
        found = folder.stat()
        if found.st_uid != self.account.uid or folder.is_symlink():
            raise BadFolder(
                f"{folder} does not belong to {self.account.name}, the account of the servers: "
                "start orthorank as the user who made it, or choose another folder with --data"
            )
        if found.st_mode & 0o077:
            raise BadFolder(f"{folder} is open to other users: chmod 700 {folder}")


def locate_state(root: Path) -> State:
    """Name the state folder without touching it."""
    return State(root.expanduser().absolute(), service_account())


def open_state(root: Path) -> State:
    """Make the state folder where it is missing.

    Raises
    ------
    BadFolder
        when it cannot be made, belongs to another user, or lies where the account of the servers cannot go.
    """
    state = locate_state(root)
    try:
        _make(state)
    except PermissionError as error:
        raise BadFolder(f"{error.filename}: permission denied; choose another folder with --data") from error
    except (FileExistsError, NotADirectoryError) as error:
        raise BadFolder(f"{error.filename} is not a folder: choose another one with --data") from error
    return state


def _make(state: State) -> None:
    if not state.root.exists():
        state.root.mkdir(parents=True, exist_ok=True)
        state.root.chmod(0o755 if state.account.switch else 0o700)
    if not state.root.is_dir():
        raise BadFolder(f"{state.root} is not a folder: choose another one with --data")
    require_way(state.account, state.root / "postgres")
    with state.lock("state"):
        state.logs.mkdir(exist_ok=True)
        for folder in (state.sockets, state.valkey, *state.root.glob(state.postgres.name)):
            state.own(folder)
