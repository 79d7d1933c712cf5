"""A draw for one context, written in one statement: no other way in is taken as often, and somebody waits each time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import uuid4

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.arrays import document, plain
from app.db.assignments import DrawnPair, Standing, drawn_arrays
from app.db.locks import Lock
from app.db.together import plainly
from app.domain.contexts import Wanted

# One context, known to say the same or new, its offer, and what was drawn for it; nothing where the stored one differs,
# or where somebody who is never asked twice may have been asked about it. Nothing either where the draw was made by
# what does not hold any more: the key, the board, its newest snapshot, the items and what they cost.
# A statement does not see what is committed while it waits for a lock. That shows in the row of the board, which is
# read again where it changed: whoever changes what a draw rests on holds the lock alone, and dates the board anew. What
# is offered is dated once the lock is had.
OFFER_ONE = text("""
WITH standing AS (
    SELECT FROM (SELECT pg_advisory_xact_lock_shared(:lock, CAST(:board AS int)) OFFSET 0) AS locked
    CROSS JOIN boards JOIN keys ON keys.id = :key AND revoked_at IS NULL
    WHERE boards.id = :board AND updated_at = :updated AND deleted_at IS NULL
        AND (SELECT id FROM snapshots WHERE board_id = :board ORDER BY computed_at DESC LIMIT 1)
            IS NOT DISTINCT FROM CAST(:snapshot AS uuid)
        AND (SELECT array_agg(items.id ORDER BY items.id) = CAST(:items AS bigint[])
                AND array_agg(label_cost ORDER BY items.id) = CAST(:costs AS float8[])
             FROM items JOIN item_spans ON items.id = item_id AND active_to IS NULL
             WHERE items.board_id = :board)
    FOR SHARE OF boards
), sent AS (
    SELECT CAST(:name AS text) AS name, CAST(:features AS jsonb) AS features, CAST(:text AS text) AS text,
           CAST(:payload AS jsonb) AS payload
    FROM standing
), known AS (
    SELECT contexts.id, (contexts.features, contexts.text, contexts.payload, offered)
        IS NOT DISTINCT FROM (sent.features, sent.text, sent.payload, TRUE) AND CAST(:annotator AS text) IS NULL AS same
    FROM contexts JOIN sent ON board_id = :board AND external_id = sent.name
), made AS (
    INSERT INTO contexts (board_id, external_id, features, text, payload, offered)
    SELECT :board, sent.*, TRUE FROM sent WHERE NOT EXISTS (SELECT FROM known)
    ON CONFLICT DO NOTHING
    RETURNING id
), given AS (
    INSERT INTO offers (board_id, context_id, external_id, source, created_at)
    SELECT :board, id, :offer, :source, clock_timestamp()
    FROM (SELECT id FROM made UNION ALL SELECT id FROM known WHERE same) AS found
    RETURNING id, context_id
), assigned AS (
    INSERT INTO assignments
        (board_id, id, offer_id, context_id, left_id, right_id, propensity, policy_snapshot_id, annotator, state,
         expires_at)
    SELECT :board, drawn.id, given.id, context_id, "left", "right", propensity, policy,
           CAST(:annotator AS text), 'leased', CAST(:expires AS timestamptz)
    FROM given CROSS JOIN unnest(CAST(:ids AS uuid[]), CAST(:lefts AS bigint[]), CAST(:rights AS bigint[]),
                                 CAST(:propensities AS float8[]), CAST(:policies AS uuid[]))
         AS drawn (id, "left", "right", propensity, policy)
)
SELECT (SELECT count(*) FROM standing), (SELECT count(*) FROM given)
""")

OneOffer = Literal["written", "differs", "moved"]
"""Whether a context was offered in one statement, differs from what is stored, or was drawn for by what is no more."""


class Footing(NamedTuple):
    """What a draw is made by, as it was when it was looked up.

    Parameters
    ----------
    key_id : of the caller.
    updated_at : when the board was changed last.
    items, costs : of the standing, as statements are fed.
    """

    key_id: int
    board_id: int
    updated_at: datetime
    standing: Standing
    items: str
    costs: str

    @classmethod
    def of(cls, key_id: int, board_id: int, updated_at: datetime, standing: Standing) -> Footing:
        """All of it."""
        items = sorted(standing.items)
        costs = plain(float(item.label_cost) for item in items)
        return cls(key_id, board_id, updated_at, standing, plain(item.id for item in items), costs)


class OfferRepository:
    """Offers of one context each."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def write(
        self, footing: Footing, name: str, wanted: Wanted, pairs: Sequence[DrawnPair], *, source: str
    ) -> OneOffer:
        """Write a context, one offer of it and what was drawn for it, or nothing.

        All pairs are leased to one annotator.
        """
        first = pairs[0] if pairs else None
        values = {
            **{
                "lock": int(Lock.VOTES),
                "key": footing.key_id,
                "board": footing.board_id,
                "updated": footing.updated_at,
            },
            **{"snapshot": footing.standing.snapshot_id, "items": footing.items, "costs": footing.costs},
            **{"name": name, "offer": str(uuid4()), "source": source},
            **{"features": document(wanted.features or {}), "text": wanted.text, "payload": document(wanted.payload)},
            **{"annotator": first and first.annotator, "expires": first and first.expires},
            **drawn_arrays(pairs),
        }
        holds, given = plainly(self._session, OFFER_ONE, values)
        return "moved" if not holds else "written" if given else "differs"
