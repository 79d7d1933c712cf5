"""Read a board's votes, contexts and rules in bulk: fixed-width binary COPY straight into NumPy columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg import Connection as Driver
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.locks import Lock, hold
from app.stats.types import Ints

BYTES_AT_ONCE = 1 << 23
HEADER, TRAILER = 19, 2
CONTEXTS_AT_ONCE = 20_000

HASH = "('x' || left(md5({0}), 16))::bit(64)::bigint"
"""64 bits of a text's content: the same on every server and in every order of arrival."""
MICROSECONDS = "(extract(epoch FROM {0} - TIMESTAMPTZ '2000-01-01 00:00+00') * 1000000)::bigint"
"""A time as COPY writes it."""

VOTES = f"""
COPY (
    SELECT id, coalesce(context_id, 0), coalesce(offer_id, 0), left_id, right_id, outcome::bigint,
           coalesce({HASH.format("voter")}, 0), coalesce(propensity, 'NaN'), created_at
    FROM votes
    WHERE board_id = %s AND id <= %s AND kind = 'pair'
    ORDER BY id
) TO STDOUT (FORMAT BINARY)
"""
VOTE_COLUMNS = ("ids", "context", "offer", "left", "right", "outcome", "voter", "propensity", "created")

OFFERS = f"""
COPY (
    SELECT id, context_id, {HASH.format("external_id")}, created_at FROM offers WHERE board_id = %s ORDER BY id
) TO STDOUT (FORMAT BINARY)
"""
OFFER_COLUMNS = ("ids", "context", "key", "created")

CONTEXTS = f"""
SELECT id, {HASH.format("external_id")}, {MICROSECONDS.format("created_at")}, features::text, text
FROM contexts
WHERE board_id = :board AND (id = ANY(:ids) OR (:offered AND offered))
ORDER BY id
"""

ITEMS = """
SELECT id, name, EXISTS (SELECT FROM item_spans WHERE item_id = items.id AND active_to IS NULL)
FROM items WHERE board_id = :board ORDER BY name COLLATE "C"
"""

SPANS = f"""
SELECT item_id, {MICROSECONDS.format("active_from")}, {MICROSECONDS.format("active_to")}
FROM item_spans JOIN items ON items.id = item_id
WHERE board_id = :board ORDER BY item_spans.id
"""

EXCLUDED = """
WITH rules AS (SELECT * FROM exclusions WHERE board_id = :board AND lifted_at IS NULL),
hits AS (
    SELECT vote_id AS id, id AS rule, reason FROM rules WHERE vote_id <= :watermark
    UNION ALL
    SELECT votes.id, rules.id, reason FROM rules JOIN votes USING (board_id, voter) WHERE votes.id <= :watermark
    UNION ALL
    SELECT votes.id, rules.id, reason
    FROM rules
    JOIN votes USING (board_id)
    JOIN boards ON boards.id = board_id
    LEFT JOIN contexts ON contexts.id = context_id
    WHERE filter IS NOT NULL AND votes.id <= :watermark
        AND coalesce(voter_type = filter ->> 'voter_type', filter ->> 'voter_type' IS NULL)
        AND coalesce(external_id = filter ->> 'context', filter ->> 'context' IS NULL)
        AND coalesce(votes.created_at >= (filter ->> 'created_from')::timestamptz, TRUE)
        AND coalesce(votes.created_at < (filter ->> 'created_to')::timestamptz, TRUE)
        AND coalesce(config -> 'outcomes' -> outcome::int ->> 'name' = filter ->> 'outcome', TRUE)
        AND (
            filter ->> 'item' IS NULL OR EXISTS (
                SELECT FROM item_names
                WHERE item_names.board_id = rules.board_id AND item_names.name = filter ->> 'item'
                AND item_id IN (left_id, right_id)
            )
        )
)
SELECT DISTINCT ON (id) id, reason FROM hits ORDER BY id, reason = 'superseded' DESC, rule
"""

FINGERPRINT = """
SELECT md5(concat_ws('|', CAST(:watermark AS bigint),
    (SELECT concat_ws(',', count(*), max(id), count(lifted_at), max(lifted_at))
     FROM exclusions WHERE board_id = :board),
    (SELECT concat_ws(',', count(*) FILTER (WHERE offered), max(id) FILTER (WHERE offered), count(text))
     FROM contexts WHERE board_id = :board),
    (SELECT concat_ws(',', count(*), max(id)) FROM offers WHERE board_id = :board),
    (SELECT concat_ws(',', count(*), max(id)) FROM judgements WHERE board_id = :board),
    (SELECT string_agg(concat_ws(',', name, active_from, active_to), ';' ORDER BY name, item_spans.id)
     FROM items LEFT JOIN item_spans ON item_id = items.id WHERE board_id = :board)
))
"""

CONTEXT_NAMES = "SELECT id, external_id FROM contexts WHERE id = ANY(:ids)"
VOTE_NAMES = "SELECT id, client_id::text FROM votes WHERE id = ANY(:ids)"

WATERMARK = "SELECT max(id) FROM votes WHERE board_id = :board"
THROUGH = "SELECT received_at FROM votes WHERE board_id = :board AND id = :watermark"

Columns = dict[str, NDArray[Any]]
Buffer = bytes | bytearray | memoryview


class ContextRow(NamedTuple):
    """A context as a refit reads it: `key` its content hash, `created` in µs of 2000, `features` as JSON."""

    id: int
    key: int
    created: int
    features: str
    text: str | None


class GatherRepository:
    """Everything that a refit reads of one board."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def watermark(self, board_id: int) -> int:
        """The board's highest vote number, 0 without one, with every vote below it committed; end the work at once."""
        hold(self._session, Lock.VOTES, board_id)
        return self._session.scalar(text(WATERMARK), {"board": board_id}) or 0

    def freeze(self) -> datetime:
        """See one state of the database from here on, and say when; call it first in the work."""
        self._session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
        now: datetime = self._session.execute(text("SELECT now()")).scalar_one()
        return now

    def through(self, board_id: int, watermark: int) -> datetime | None:
        """When the vote of that number was received."""
        values = {"board": board_id, "watermark": watermark}
        received: datetime | None = self._session.execute(text(THROUGH), values).scalar_one_or_none()
        return received

    def fingerprint(self, board_id: int, watermark: int) -> str:
        """Equal where nothing that a refit reads has changed."""
        values = {"board": board_id, "watermark": watermark}
        return str(self._session.execute(text(FINGERPRINT), values).scalar_one())

    def votes(self, board_id: int, watermark: int) -> Columns:
        """The board's pair votes up to a number; 0 stands for no context, offer or voter, NaN for no propensity."""
        return self._columns(VOTES, (board_id, watermark), VOTE_COLUMNS)

    def offers(self, board_id: int) -> Columns:
        """The named offers and draws."""
        return self._columns(OFFERS, (board_id,), OFFER_COLUMNS)

    def contexts(self, board_id: int, ids: Ints, *, offered: bool) -> Iterator[ContextRow]:
        """These contexts, and those offered where asked for, by number."""
        query = text(CONTEXTS).execution_options(yield_per=CONTEXTS_AT_ONCE)
        values = {"board": board_id, "ids": ids.tolist(), "offered": offered}
        return map(ContextRow._make, self._session.execute(query, values))

    def context_names(self, ids: Ints) -> dict[int, str]:
        """Public ids of contexts."""
        rows = self._session.execute(text(CONTEXT_NAMES), {"ids": np.unique(ids).tolist()})
        return {row[0]: row[1] for row in rows}

    def vote_names(self, ids: Ints) -> dict[int, str]:
        """Public ids of votes."""
        rows = self._session.execute(text(VOTE_NAMES), {"ids": np.unique(ids).tolist()})
        return {row[0]: row[1] for row in rows}

    def items(self, board_id: int) -> list[tuple[int, str, bool]]:
        """(number, name, active now) of every item, by name."""
        return [(row[0], row[1], row[2]) for row in self._session.execute(text(ITEMS), {"board": board_id})]

    def spans(self, board_id: int) -> list[tuple[int, int, int | None]]:
        """(item, from, to) in µs of 2000, `to` None while the span is open."""
        return [(row[0], row[1], row[2]) for row in self._session.execute(text(SPANS), {"board": board_id})]

    def excluded(self, board_id: int, watermark: int) -> dict[int, str]:
        """Votes that a rule excludes, with the reason: that it was superseded before all, else of the oldest rule."""
        rows = self._session.execute(text(EXCLUDED), {"board": board_id, "watermark": watermark})
        return {row[0]: row[1] for row in rows}

    def _columns(self, statement: str, parameters: tuple[int, ...], names: tuple[str, ...]) -> Columns:
        driver = self._session.connection().connection.driver_connection
        assert isinstance(driver, Driver)
        with driver.cursor() as cursor, cursor.copy(statement, parameters) as copy:
            parts = list(_records(copy, _layout(names)))
        return {name: np.concatenate([part[name] for part in parts]) for name in names}


def _layout(names: tuple[str, ...]) -> np.dtype[np.void]:
    """A COPY row of fixed-width fields: a count of fields, then each field's length and its eight bytes."""
    fields: list[tuple[str, str]] = [("fields", ">i2")]
    for name in names:
        fields += [(f"{name} length", ">i4"), (name, ">f8" if name == "propensity" else ">i8")]
    return np.dtype(fields)


def _records(copy: Iterable[Buffer], layout: np.dtype[np.void]) -> Iterator[Columns]:
    """Native columns of the rows that a binary COPY streams, some megabytes at a time."""
    held, skip = bytearray(), HEADER
    for block in copy:
        held += block
        if len(held) >= BYTES_AT_ONCE:
            end = skip + (len(held) - skip) // layout.itemsize * layout.itemsize
            yield _native(bytes(held[skip:end]), layout)
            del held[:end]
            skip = 0
    yield _native(bytes(held[skip : len(held) - TRAILER]), layout)


def _native(block: bytes, layout: np.dtype[np.void]) -> Columns:
    rows = np.frombuffer(block, dtype=layout)
    return {name: rows[name].astype(rows[name].dtype.newbyteorder("=")) for name in rows.dtype.names or ()}
