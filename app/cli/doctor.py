"""`orthorank doctor`: look at each thing that the service needs, and say how to mend what is missing."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import typer
from redis import Redis
from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.cli.options import Data, settings_in
from app.cli.schema import difference, schema_at
from app.embedded.errors import EmbeddedError
from app.embedded.finding import with_embedded
from app.embedded.programs import postgres_programs, valkey_program
from app.embedded.state import locate_state
from app.settings import Settings

commands = typer.Typer()

LEAST_SPACE = 2**30
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Finding:
    """What one look found; `mend` says what to do about it."""

    what: str
    good: bool
    detail: str
    mend: str = ""


@commands.command()
def doctor(data: Data = None) -> None:
    """Check the installation; exit status 1 when something is missing."""
    findings = list(_look(settings_in(data)))
    for finding in findings:
        print(f"{'ok     ' if finding.good else 'MISSING'} {finding.what}: {finding.detail}")
        if finding.mend and not finding.good:
            print(f"        {finding.mend}")
    if not all(finding.good for finding in findings):
        raise typer.Exit(1)


def _look(settings: Settings) -> Iterator[Finding]:
    yield _python()
    yield _lightgbm()
    yield from _folder(settings.storage.data)
    try:
        connected = with_embedded(settings)
    except EmbeddedError as error:
        yield Finding("servers", False, str(error))
        return
    yield _postgres(settings) if connected.database.url is None else _database(connected.database.url)
    yield _valkey(settings) if connected.redis.url is None else _redis(connected.redis.url)


def _python() -> Finding:
    version = sys.version_info[:2]
    return Finding("Python", version >= OLDEST_PYTHON, ".".join(map(str, version)), "install Python 3.11 or newer")


def _lightgbm() -> Finding:
    try:
        version = import_module("lightgbm").__version__
    except (ImportError, OSError) as error:
        return Finding(
            "LightGBM", False, str(error), "install OpenMP: apt-get install libgomp1 (macOS: brew install libomp)"
        )
    return Finding("LightGBM", True, version)


def _folder(folder: Path) -> Iterator[Finding]:
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    mend = "choose a folder of yours with --data or ORTHORANK_DATA"
    yield Finding("state folder", os.access(there, os.W_OK | os.X_OK), f"{folder} (in {there})", mend)
    free = shutil.disk_usage(there).free
    yield Finding("disk", free >= LEAST_SPACE, f"{free / 2**30:.1f} GiB free in {there}", "free at least 1 GiB")


def _postgres(settings: Settings) -> Finding:
    return _installed("PostgreSQL", lambda: postgres_programs(locate_state(settings.storage.data)).folder)


def _valkey(settings: Settings) -> Finding:
    return _installed("Valkey", lambda: valkey_program(locate_state(settings.storage.data)))


def _installed(what: str, find: Callable[[], Path]) -> Finding:
    try:
        return Finding(what, True, f"{find()}; `orthorank up` does not run")
    except (EmbeddedError, OSError) as error:
        return Finding(what, False, str(error))


def _database(url: str) -> Finding:
    try:
        schema = schema_at(url)
    except SQLAlchemyError as error:
        return Finding("database", False, str(error.__cause__ or error), "check ORTHORANK_DATABASE_URL")
    return Finding("database", schema.current, "reached", difference(schema))


def _redis(url: str) -> Finding:
    try:
        with Redis.from_url(url, socket_connect_timeout=5, retry=None) as client:
            client.ping()
    except (RedisError, OSError) as error:
        return Finding("Redis", False, str(error), "check ORTHORANK_REDIS_URL")
    return Finding("Redis", True, "reached")
