"""Which account runs the servers: ours, or as root an unprivileged one (PostgreSQL refuses to run as root)."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.embedded.errors import BadFolder, NotInstalled

UNPRIVILEGED = ("postgres", "nobody")


@dataclass(frozen=True, slots=True)
class Account:
    """An account of this machine; `switch` says that a child has to change to it."""

    name: str
    uid: int
    gid: int
    switch: bool

    @property
    def groups(self) -> Sequence[int] | None:
        """The extra groups of a child: none of ours."""
        return () if self.switch else None

    @property
    def user(self) -> int | None:
        """The user that a child changes to."""
        return self.uid if self.switch else None

    @property
    def group(self) -> int | None:
        """The group that a child changes to."""
        return self.gid if self.switch else None

    def may(self, path: Path, bits: int) -> bool:
        """Tell whether the mode of `path` grants all `bits` (4 read, 2 write, 1 enter) to this account."""
        found = path.stat()
        if found.st_uid == self.uid:
            granted = stat.S_IMODE(found.st_mode) >> 6
        elif found.st_gid == self.gid:
            granted = stat.S_IMODE(found.st_mode) >> 3
        else:
            granted = stat.S_IMODE(found.st_mode)
        return granted & bits == bits


def service_account() -> Account:
    """Return the account that runs the servers."""
    if os.geteuid() != 0:
        return Account(_name(os.geteuid()), os.geteuid(), os.getegid(), switch=False)
    for name in UNPRIVILEGED:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid, switch=True)
    raise NotInstalled(
        "PostgreSQL does not run as root, and this machine has no account named postgres or nobody: "
        "add one, run orthorank as another user, or set ORTHORANK_DATABASE_URL and ORTHORANK_REDIS_URL"
    )


def blocked_at(account: Account, path: Path) -> Path | None:
    """Return the first folder on the way to `path` that the account cannot enter."""
    return next((folder for folder in reversed(path.parents) if not account.may(folder, 1)), None)


def require_way(account: Account, path: Path) -> None:
    """Refuse a path that the account cannot reach; the permissions of parents are never changed."""
    blocked = blocked_at(account, path)
    if blocked is not None:
        raise BadFolder(
            f"the servers run as {account.name}, which cannot enter {blocked} "
            f"(mode {stat.S_IMODE(blocked.stat().st_mode):04o}): choose another folder with --data "
            "or ORTHORANK_DATA, for example /var/lib/orthorank"
        )


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)
