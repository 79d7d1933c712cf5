"""Statements of the way in of votes, planned once for all while the tables are empty, look rows up by their keys."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import Engine, TextClause, text

from app.db import menus
from app.db.ballots import MAKE, STORE
from app.db.contexts import FIND
from app.db.votes import BY_ID, HEADS

KEYS = {"contexts": "external_id", "votes": "client_id"}


def plan(database: Engine, statement: TextClause) -> list[str]:
    """The lines of the plan that serves any values."""
    numbers: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        return f"${numbers.setdefault(found[1], len(numbers) + 1)}"

    written = re.sub(r"(?<!:):(\w+)", numbered, statement.text)
    with database.connect() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        driver = connection.connection.driver_connection
        assert driver is not None
        return [row[0] for row in driver.execute(f"EXPLAIN (GENERIC_PLAN) {written}").fetchall()]


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        (MAKE, "contexts"),
        (STORE, "contexts"),
        (FIND, "contexts"),
        (BY_ID, "votes"),
        (HEADS, "contexts"),
        (menus.HEADS, "contexts"),
    ],
    ids=["make", "store", "find", "by-id", "heads", "menus"],
)
def test_rows_are_looked_up_by_their_key(database: Engine, statement: TextClause, table: str) -> None:
    lines = plan(database, statement)
    found = [at for at, line in enumerate(lines) if re.search(rf"Scan.* on {table}\b", line)]
    assert len(found) == 1, "\n".join(lines)
    for at in found:
        assert "Index Cond" in lines[at + 1], "\n".join(lines)
        assert KEYS[table] in lines[at + 1], "\n".join(lines)
        assert "board_id" in lines[at + 1], "\n".join(lines)
