"""Rows packed by the server, straight into NumPy columns."""

from __future__ import annotations

from typing import Any, LiteralString, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection as Driver
from psycopg import sql
from sqlalchemy.orm import Session

ROWS_AT_ONCE = 50_000
NO_END = 2**63 - 1

HASH = "('x' || left(md5({0}), 16))::bit(64)::bigint"
"""64 bits of a text's content: the same on every server and in every order of arrival."""
MICROSECONDS = "(extract(epoch FROM {0} - TIMESTAMPTZ '2000-01-01 00:00+00') * 1000000)::bigint"
"""A time as `timestamptz_send` writes it."""

VOTE_COLUMNS = {
    "ids": "int8send(id)",
    "context": "int8send(coalesce(context_id, 0))",
    "offer": "int8send(coalesce(offer_id, 0))",
    "left": "int8send(left_id)",
    "right": "int8send(right_id)",
    "outcome": "int8send(outcome::bigint)",
    "voter": f"int8send(coalesce({HASH.format('voter')}, 0))",
    "propensity": "float8send(coalesce(propensity, 'NaN'))",
    "created": "timestamptz_send(created_at)",
}
OFFER_COLUMNS = {
    "ids": "int8send(id)",
    "context": "int8send(context_id)",
    "key": f"int8send({HASH.format('external_id')})",
    "created": "timestamptz_send(created_at)",
    "drawn": "int8send((source IN ('acquire', 'pool'))::int::bigint)",
}
DRAW_COLUMNS = {
    "offer": "int8send(offer_id)",
    "left": "int8send(left_id)",
    "right": "int8send(right_id)",
    "answered": "timestamptz_send(coalesce(answered_at, 'infinity'))",
}
"""An infinite time is sent as the largest number."""
JUDGEMENT_COLUMNS = {
    "context": "int8send(context_id)",
    "judge": f"int8send({HASH.format('judge')})",
    "left": "int8send(left_id)",
    "right": "int8send(right_id)",
    "created": "timestamptz_send(created_at)",
}
CHANCE = "float8send(coalesce((probabilities ->> %s::text)::float8, 0))"

Columns = dict[str, NDArray[Any]]


class Packed(NamedTuple):
    """Rows of a table as one string of eight bytes a field.

    A row at a time, the driver's own work would take longer than the server's.

    Parameters
    ----------
    table : whose rows.
    columns : expressions of eight bytes by name.
    key : an indexed column that they are read along; rows that share it come together.
    values : parameters within the expressions, in order.
    condition, asked : which rows only, with its parameters.
    """

    table: str
    columns: dict[str, str]
    key: str
    values: tuple[str, ...] = ()
    condition: LiteralString = ""
    asked: tuple[Any, ...] = ()

    def unpacked(self, block: bytes) -> Columns:
        """The columns of some rows, numbers in their own byte order."""
        fields = np.frombuffer(block, dtype=">i8").reshape(-1, len(self.columns))
        columns: Columns = {name: fields[:, at].astype(np.int64) for at, name in enumerate(self.columns)}
        if "propensity" in columns:
            columns["propensity"] = columns["propensity"].view(np.float64)
        return columns

    def query(self) -> sql.Composed:
        """The next rows of a board: how many, the last one's key, they."""
        return sql.SQL(
            "SELECT count(*), max({key}), string_agg({fields}, ''::bytea ORDER BY {key}) FROM ("
            " SELECT * FROM {table} WHERE board_id = %s AND {key} > %s AND {key} <= %s {only} {condition}"
            " ORDER BY {key} FETCH FIRST {most} ROWS WITH TIES"
            ") AS block"
        ).format(
            fields=sql.SQL(" || ").join(sql.SQL(field) for field in self.columns.values()),
            table=sql.Identifier(self.table),
            key=sql.Identifier(self.key),
            only=sql.SQL("AND kind = 'pair'") if self.table == "votes" else sql.SQL(""),
            condition=sql.SQL(self.condition),
            most=sql.Literal(ROWS_AT_ONCE),
        )


def columns_of(session: Session, packed: Packed, board_id: int, last: int, *, after: int = 0) -> Columns:
    """The columns of a board's rows whose keys are above one number, and up to another."""
    driver = session.connection().connection.driver_connection
    assert isinstance(driver, Driver)
    query = packed.query()
    blocks, full = [packed.unpacked(b"")], True
    with driver.cursor(binary=True) as cursor:
        while full:
            values = (*packed.values, board_id, after, last, *packed.asked)
            size, end, block = cursor.execute(query, values).fetchone() or (0, 0, b"")
            full = size >= ROWS_AT_ONCE
            if size:
                blocks.append(packed.unpacked(block))
                after = end
    return _stacked(blocks)


def _stacked(blocks: list[Columns]) -> Columns:
    """Blocks as one; each column's parts are let go once they are together."""
    return {name: np.concatenate([block.pop(name) for block in blocks]) for name in list(blocks[0])}
