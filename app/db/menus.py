"""Votes on menus: inserted beside those on pairs, found by their menu, read back with the names of their items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from sqlalchemy import CursorResult, func, select, text
from sqlalchemy.orm import Session

from app.db.arrays import document, plain, texts
from app.db.columns import of_places, of_votes
from app.db.models.items import Item
from app.domain.menus import Kind, Ranking
from app.domain.votes import Row

COLUMNS = {
    "kind": "text",
    "client_id": "uuid",
    "digest": "bytea",
    "context_id": "bigint",
    "offer_id": "bigint",
    "voter": "text",
    "voter_type": "text",
    "propensity": "float8",
    "revision": "smallint",
    "created_at": "timestamptz",
    "ballot": "jsonb",
    "menu": "text",
}

INSERT = text(
    f"INSERT INTO votes (board_id, {', '.join(COLUMNS)})"
    f" SELECT :board, {', '.join(name for name in COLUMNS if name != 'menu')}, CAST(menu AS bigint[]) FROM unnest("
    + ", ".join(f"CAST(:{name} AS {kind}[])" for name, kind in COLUMNS.items())
    + f") AS sent ({', '.join(COLUMNS)}) ON CONFLICT DO NOTHING"
)

HEADS = text("""
WITH slot AS (
    SELECT contexts.id AS context_id, sent.value ->> 2 AS voter, ARRAY(
        SELECT DISTINCT item_id FROM item_names
        WHERE board_id = :board AND name IN (SELECT jsonb_array_elements_text(sent.value -> 1))
        ORDER BY item_id
    ) AS menu
    FROM jsonb_array_elements(CAST(:slots AS jsonb)) AS sent (value)
    CROSS JOIN LATERAL (
        SELECT id FROM contexts WHERE board_id = :board AND external_id = sent.value ->> 0 LIMIT 1
    ) AS contexts
)
SELECT slot.context_id, slot.menu, slot.voter, head.revision, head.id
FROM slot
CROSS JOIN LATERAL (
    SELECT revision, id FROM votes
    WHERE board_id = :board AND context_id = slot.context_id AND menu = slot.menu AND voter = slot.voter
        AND menu IS NOT NULL AND voter IS NOT NULL AND context_id IS NOT NULL
    ORDER BY revision DESC LIMIT 1
) AS head
""")
"""Newest votes of slots, which come as [context, names of the menu, voter]."""


def insert(session: Session, board_id: int, rows: Sequence[Row], *, now: datetime) -> int:
    """Insert rankings that do not collide with a stored vote; how many that were."""
    values = {
        **of_votes(rows, now=now),
        **of_places(rows),
        "kind": texts([None if row.ranking is None else row.ranking.kind for row in rows]),
        "ballot": texts([document(_numbered(row)) for row in rows]),
        "menu": texts([plain(row.menu) for row in rows]),
    }
    result = session.execute(INSERT, {"board": board_id, **values})
    assert isinstance(result, CursorResult)
    return result.rowcount


def rankings(session: Session, votes: Iterable[tuple[str, dict[str, Any] | None]]) -> list[Ranking | None]:
    """What votes said, by their kinds and ballots; None of one on a pair, which has no ballot."""
    stored = list(votes)
    numbers = {number for _, ballot in stored if ballot is not None for number in ballot["menu"]}
    query = select(Item.id, Item.name).where(Item.id == func.any(list(numbers)))
    names = {row[0]: row[1] for row in session.execute(query)} if numbers else {}
    return [None if ballot is None else _named(kind, ballot, names) for kind, ballot in stored]


def _named(kind: str, ballot: Mapping[str, Any], names: Mapping[int, str]) -> Ranking:
    tiers = tuple(tuple(names[number] for number in tier) for tier in ballot["tiers"])
    return Ranking(tuple(names[number] for number in ballot["menu"]), tiers, cast(Kind, kind))


def _numbered(row: Row) -> dict[str, Any]:
    assert row.ranking is not None
    ids = row.item_ids
    tiers = [[ids[name] for name in tier] for tier in row.ranking.tiers]
    return {"menu": [ids[name] for name in row.ranking.menu], "tiers": tiers}
