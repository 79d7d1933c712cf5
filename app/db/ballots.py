"""Votes stored in one round trip, where all that they rest on is as it was remembered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.arrays import document, plain, texts
from app.db.columns import of_pairs
from app.db.keys import USE_RESOLUTION
from app.db.locks import SHARED, Lock
from app.db.together import Statement, together
from app.db.votes import BY_INDEX
from app.domain.boards import Board
from app.domain.votes import Row

COLUMNS = {
    "client_id": "uuid",
    "digest": "bytea",
    "context": "text",
    "features": "jsonb",
    "left_id": "bigint",
    "right_id": "bigint",
    "outcome": "smallint",
    "voter": "text",
    "voter_type": "text",
    "propensity": "float8",
    "created_at": "timestamptz",
}

# Contexts are written in the order of every other writer. They are looked up one by one, LIMIT keeps them from being
# joined: a plan made while there were few, and kept, would read all contexts of the board.
MAKE = text("""
INSERT INTO contexts (board_id, external_id, features, offered)
SELECT DISTINCT ON (context COLLATE "C") :board, context, coalesce(sent.features, '{}'), TRUE
FROM unnest(CAST(:context AS text[]), CAST(:features AS jsonb[])) AS sent (context, features)
LEFT JOIN LATERAL (
    SELECT id FROM contexts WHERE board_id = :board AND external_id = context LIMIT 1
) AS known ON TRUE
WHERE context IS NOT NULL AND known.id IS NULL
ORDER BY context COLLATE "C", sent.features IS NULL
ON CONFLICT DO NOTHING
RETURNING id
""")

# Nothing is stored where the board, a key or the name of an item is another now; a vote is not where its id or its slot
# is taken, or its context is known otherwise.
STORE = text(f"""
WITH standing AS (
    SELECT FROM boards
    WHERE id = :board AND updated_at = :updated AND deleted_at IS NULL
        AND (SELECT count(*) FROM keys
             WHERE id = ANY(CAST(:keys AS bigint[])) AND revoked_at IS NULL
                 AND last_used_at >= now() - CAST(:resolution AS interval)) = :n_keys
        AND (SELECT count(*)
             FROM unnest(CAST(:names AS text[]), CAST(:items AS bigint[])) AS sent (name, item)
             JOIN item_names ON board_id = :board AND item_names.name = sent.name AND item_id = sent.item) = :n_names
), stored AS (
    INSERT INTO votes (board_id, kind, client_id, digest, context_id, left_id, right_id, outcome, voter, voter_type,
                       propensity, created_at)
    SELECT :board, 'pair', client_id, digest, known.id, left_id, right_id, outcome, voter, voter_type, propensity,
           created_at
    FROM standing CROSS JOIN unnest({", ".join(f"CAST(:{name} AS {kind}[])" for name, kind in COLUMNS.items())})
         AS sent ({", ".join(COLUMNS)})
    LEFT JOIN LATERAL (
        SELECT id, offered, contexts.features FROM contexts WHERE board_id = :board AND external_id = context LIMIT 1
    ) AS known ON TRUE
    WHERE context IS NULL OR offered AND (sent.features IS NULL OR sent.features = known.features)
    ORDER BY known.id NULLS FIRST, left_id, right_id, voter COLLATE "C" NULLS FIRST, client_id
    ON CONFLICT DO NOTHING
    RETURNING received_at
)
SELECT count(*), max(received_at) FROM stored
""")


class Footing(NamedTuple):
    """What the votes of a board were prepared by, as it was remembered.

    Parameters
    ----------
    keys : numbers of those that the votes came with.
    names : of items, with the items' numbers.
    """

    board: Board
    keys: Collection[int]
    names: Mapping[str, int]


class BallotRepository:
    """Votes on pairs that are nothing special: no assignment, no named offer, no limit of their voters."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def store(self, groups: Sequence[tuple[Footing, Sequence[Row]]], *, now: datetime) -> list[datetime] | None:
        """Store the votes of each board, and say when they were received, in one round trip.

        None where not every vote could be stored: then the transaction has to be rolled back.

        Parameters
        ----------
        groups : in the order of the boards' numbers.
        now : the time of votes that bring none.
        """
        asked: list[Statement] = [(BY_INDEX, {})]
        asked += [(SHARED, {"lock": int(Lock.VOTES), "board": footing.board.id}) for footing, _ in groups]
        for footing, rows in groups:
            values = _values(footing, rows, now)
            asked += [(MAKE, values), (STORE, values)]
        found = together(self._session, asked)[-2 * len(groups) + 1 :: 2]
        received = [moment for ((count, moment),), (_, rows) in zip(found, groups, strict=True) if count == len(rows)]
        return received if len(received) == len(groups) else None


def _values(footing: Footing, rows: Sequence[Row], now: datetime) -> dict[str, Any]:
    board, contexts = footing.board, [row.ballot.context for row in rows]
    return {
        "board": board.id,
        "updated": board.updated_at,
        "keys": plain(footing.keys),
        "n_keys": len(footing.keys),
        "resolution": USE_RESOLUTION,
        "names": texts(footing.names),
        "items": plain(footing.names.values()),
        "n_names": len(footing.names),
        **of_pairs(rows, now=now),
        "context": texts([None if context is None else context.id for context in contexts]),
        "features": texts([document(row.features) for row in rows]),
    }
