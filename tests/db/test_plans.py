"""Statements of the way in of votes, planned once for all while the tables are empty, look rows up by their keys."""

from __future__ import annotations

import re
from functools import partial

import pytest
from sqlalchemy import Engine, TextClause, text

from app.db import menus
from app.db.ballots import STORE
from app.db.contexts import FIND
from app.db.engine import open_sessions
from app.db.unit_of_work import UnitOfWork
from app.db.votes import BY_ID, HEADS
from tests.services.casting import make_board

CONTEXTS = text("""
INSERT INTO contexts (board_id, external_id, features, offered)
SELECT :board, 'c-' || number, '{}', TRUE FROM generate_series(1, :size) AS number
""")
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
        (FIND, "contexts"),
        (BY_ID, "votes"),
        (HEADS, "contexts"),
        (menus.HEADS, "contexts"),
    ],
    ids=["find", "by-id", "heads", "menus"],
)
def test_rows_are_looked_up_by_their_key(database: Engine, statement: TextClause, table: str) -> None:
    assert looks_up(plan(database, statement), table) == 1


@pytest.mark.parametrize("size", [0, 300])
def test_the_function_looks_contexts_up_by_their_key(database: Engine, size: int) -> None:
    """Also where a plan that reads all of a small table would take less."""
    said: list[str] = []
    board = str(make_board(partial(UnitOfWork, open_sessions(database))).id)
    with database.begin() as connection:
        connection.execute(CONTEXTS, {"board": int(board), "size": size})
        connection.execute(text("ANALYZE contexts"))
    with database.connect() as connection:
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.add_notice_handler(lambda message: said.append(message.message_primary))
        driver.execute("LOAD 'auto_explain'")
        for setting in ("auto_explain.log_nested_statements = on", "auto_explain.log_min_duration = 0"):
            driver.execute(f"SET LOCAL {setting}")
        driver.execute("SET LOCAL client_min_messages = log")
        # One vote on a board that has changed: all statements run, then it is refused.
        values = dict.fromkeys(re.findall(r":(\w+)", STORE.text), "{}")
        values |= {"boards": f"{{{board}}}", "updates": "{epoch}", "resolution": "1 minute"}
        values |= {"board_ids": f"{{{board}}}", "context": "{c}", "client_id": "{00000000000000000000000000000001}"}
        assert connection.execute(STORE, values).scalar_one() is None
    lines = [line for message in said for line in message.splitlines()]
    assert looks_up(lines, "contexts") == 2


def looks_up(lines: list[str], table: str) -> int:
    """How often a table is read, each time by its key."""
    found = [at for at, line in enumerate(lines) if re.search(rf"Scan.* on {table}\b", line)]
    for at in found:
        assert "Index Cond" in lines[at + 1], "\n".join(lines)
        assert KEYS[table] in lines[at + 1], "\n".join(lines)
        assert "board_id" in lines[at + 1], "\n".join(lines)
    return len(found)
