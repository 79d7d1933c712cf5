"""The schema of the database and that of this version: brought together, or at least told apart."""

from __future__ import annotations

import sys

from sqlalchemy.exc import DBAPIError

from app.cli.options import OtherSchema
from app.db.engine import open_engine
from app.db.migrations import Schema, schema_of, upgrade


def require_schema(url: str) -> None:
    """Say where the schema is another one; a database that does not answer is waited for by whoever needs it.

    A newer one is served on, for whatever a migration leaves as it was: the processes of an installation do not change
    their version in the same moment.

    Raises
    ------
    OtherSchema
        where migrations of this version are missing, without which nothing can be answered.
    """
    try:
        schema = schema_at(url)
    except DBAPIError:
        return
    if schema.newer:
        print(f"orthorank: {difference(schema)}", file=sys.stderr, flush=True)
    elif not schema.current:
        raise OtherSchema(difference(schema))


def migrated(url: str) -> None:
    """Bring the database to the schema of this version.

    Raises
    ------
    OtherSchema
        where it has a newer one, which this version knows no way from.
    """
    schema = schema_at(url)
    if schema.newer:
        raise OtherSchema(difference(schema))
    upgrade(url)


def schema_at(url: str) -> Schema:
    """The schema of the database at `url`, looked up by a connection of its own."""
    engine = open_engine(url)
    try:
        with engine.connect() as connection:
            return schema_of(connection)
    finally:
        engine.dispose()


def difference(schema: Schema) -> str:
    """What was found instead of what is expected, and what to do."""
    found = "no schema" if schema.found is None else f"schema {schema.found}"
    mend = "install the version that made it" if schema.newer else "run `orthorank migrate`"
    return f"the database has {found}, and this version is made for {schema.expected}: {mend}"
