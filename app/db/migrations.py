"""Bring a database to the schema of this version, and say whether it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

import migrations
from app.db.engine import open_engine

LOCK_TIMEOUT = "5s"
"""A migration that cannot have its lock gives up rather than queue every vote behind it."""

ONE_AT_A_TIME = 0x6F72_7468
"""Advisory lock key: services that start together migrate in turn."""


def upgrade(url: str, revision: str = "head") -> None:
    """Migrate the database at `url` up to `revision`."""
    _run(url, command.upgrade, revision)


def downgrade(url: str, revision: str) -> None:
    """Migrate the database at `url` down to `revision`; "base" empties it."""
    _run(url, command.downgrade, revision)


def check(url: str) -> None:
    """Raise alembic.util.CommandError where the models and the migrated schema differ."""
    with _transaction(url) as connection:
        command.check(_config(connection))


class Schema(NamedTuple):
    """How far a database was migrated.

    Parameters
    ----------
    found : its last migration; None where it has had none.
    expected : the last one of this version.
    newer : whether this version does not know the one that was found.
    """

    found: str | None
    expected: str
    newer: bool

    @property
    def current(self) -> bool:
        """Whether it is exactly the schema of this version."""
        return self.found == self.expected


def schema_of(connection: Connection) -> Schema:
    """The schema of the database beside that of this version."""
    known = ScriptDirectory.from_config(_config(connection))
    expected = known.get_current_head()
    assert expected is not None
    found = MigrationContext.configure(connection).get_current_revision()
    newer = found is not None and found not in {script.revision for script in known.walk_revisions()}
    return Schema(found, expected, newer)


def _run(url: str, action: Callable[[Config, str], None], revision: str) -> None:
    with _transaction(url) as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ONE_AT_A_TIME})
        connection.execute(text(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'"))
        action(_config(connection), revision)


@contextmanager
def _transaction(url: str) -> Iterator[Connection]:
    engine = open_engine(url)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def _config(connection: Connection) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = connection
    return config
