"""Draws and the assignments made of them: drawn in bulk, leased one by one, answered once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session, aliased

from app.db.arrays import moments, plain, texts, uuids
from app.db.models.assignments import Assignment, Draw
from app.db.models.contexts import Context
from app.db.models.items import Item

OFFER = text("""
INSERT INTO offers (board_id, context_id, external_id, source, created_at)
SELECT :board, sent.context, sent.name, :source, statement_timestamp()
FROM unnest(CAST(:contexts AS bigint[]), CAST(:names AS text[])) AS sent (context, name)
RETURNING external_id, id
""")

ASSIGN = text("""
INSERT INTO assignments
    (board_id, id, offer_id, context_id, left_id, right_id, propensity, policy_snapshot_id, annotator, state,
     expires_at)
SELECT :board, id, offer, context, "left", "right", propensity, policy, annotator, state, expires
FROM unnest(CAST(:ids AS uuid[]), CAST(:offers AS bigint[]), CAST(:contexts AS bigint[]), CAST(:lefts AS bigint[]),
            CAST(:rights AS bigint[]), CAST(:propensities AS float8[]), CAST(:policies AS uuid[]),
            CAST(:annotators AS text[]), CAST(:states AS text[]), CAST(:expiries AS timestamptz[]))
     AS sent (id, offer, context, "left", "right", propensity, policy, annotator, state, expires)
""")

POOL = text("""
WITH taken AS (
    SELECT id FROM contexts WHERE board_id = :board AND NOT offered ORDER BY lot LIMIT :limit FOR UPDATE SKIP LOCKED
)
UPDATE contexts SET offered = TRUE FROM taken WHERE contexts.id = taken.id
RETURNING contexts.id, external_id, features, contexts.text, payload
""")

FREE = """
FROM assignments AS waits
JOIN offers ON offers.id = waits.offer_id
JOIN contexts ON contexts.id = waits.context_id
WHERE waits.board_id = :board AND source = 'pool'
    AND (waits.state = 'open' OR (waits.state = 'leased' AND waits.expires_at < :now))
    AND waits.left_id = ANY(CAST(:items AS bigint[])) AND waits.right_id = ANY(CAST(:items AS bigint[]))
    AND NOT EXISTS (
        SELECT FROM assignments AS had
        WHERE had.context_id = waits.context_id AND had.annotator = :annotator
            AND had.left_id = waits.left_id AND had.right_id = waits.right_id
    )
"""

WAITING = text(f"""
SELECT waits.id, waits.state, waits.offer_id, waits.context_id, contexts.external_id, payload,
       waits.left_id, waits.right_id, waits.propensity, waits.policy_snapshot_id
{FREE}
ORDER BY waits.expires_at NULLS FIRST, waits.id
LIMIT :limit
FOR UPDATE OF waits SKIP LOCKED
""")

IN_HAND = text(f"""
SELECT EXISTS (SELECT FROM contexts WHERE board_id = :board AND NOT offered) OR EXISTS (SELECT {FREE})
""")

HAD = text("""
SELECT context_id, left_id, right_id
FROM assignments WHERE context_id = ANY(CAST(:contexts AS bigint[])) AND annotator = :annotator
""")

STANDING = text("""
SELECT newest.id, items.id, name, label_cost
FROM (SELECT (SELECT id FROM snapshots WHERE board_id = :board ORDER BY computed_at DESC LIMIT 1)) AS newest (id)
LEFT JOIN (item_spans JOIN items ON items.id = item_id AND active_to IS NULL) ON items.board_id = :board
""")

ALONE = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, :board))")


class DrawnPair(NamedTuple):
    """One assignment as it is written."""

    id: UUID
    offer: int
    context: int
    left: int
    right: int
    propensity: float
    policy: UUID | None
    annotator: str | None
    state: str
    expires: datetime | None


class Waiting(NamedTuple):
    """A drawn pair of the pool that nobody holds at the moment."""

    id: UUID
    state: str
    offer: int
    context: int
    context_name: str
    payload: Any
    left: int
    right: int
    propensity: float
    policy: UUID | None


class Held(NamedTuple):
    """An assignment as the vote that answers it needs it."""

    id: UUID
    state: str
    offer: int
    annotator: str | None
    propensity: float
    context: str
    left: str
    right: str


class PoolContext(NamedTuple):
    """A context taken from the pool."""

    id: int
    name: str
    features: dict[str, Any]
    text: str | None
    payload: Any


class Candidate(NamedTuple):
    """An item that can be drawn now."""

    id: int
    name: str
    label_cost: float


class Standing(NamedTuple):
    """What a draw depends on: the newest snapshot, None before the first, and the active items."""

    snapshot_id: UUID | None
    items: list[Candidate]

    @classmethod
    def of(cls, snapshot_id: UUID | None, items: Iterable[Iterable[Any]]) -> Standing:
        """From rows of the items, in the order in which refits know them."""
        return cls(snapshot_id, sorted((Candidate._make(row) for row in items), key=attrgetter("name")))


class AssignmentRepository:
    """Draws and assignments of all boards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def alone(self, board_id: int, name: str) -> None:
        """Let nobody else act under this name on the board until the transaction ends."""
        self._session.execute(ALONE, {"board": board_id, "name": name})

    def standing(self, board_id: int) -> Standing:
        """The newest snapshot, and the active items in the order in which refits know them."""
        rows = self._session.execute(STANDING, {"board": board_id}).all()
        return Standing.of(rows[0][0], (row[1:] for row in rows if row[1]))

    def answered(self, board_id: int, key: str) -> Draw | None:
        """What was answered to an earlier request under this key."""
        return self._session.scalars(select(Draw).where(Draw.board_id == board_id, Draw.key == key)).one_or_none()

    def remember(self, board_id: int, key: str, digest: bytes, document: dict[str, Any]) -> None:
        """Keep an answer for requests that come again."""
        self._session.add(Draw(board_id=board_id, key=key, digest=digest, document=document))
        self._session.flush()

    def offer(self, board_id: int, contexts: Sequence[int], *, source: str) -> list[int]:
        """Record one draw opportunity of each context; their numbers, in order.

        They are dated after the items were read, not as the work began: an item drawn was active by then.
        """
        names = [str(uuid4()) for _ in contexts]
        values = {"board": board_id, "source": source, "contexts": plain(contexts), "names": texts(names)}
        numbers = {row.external_id: row.id for row in self._session.execute(OFFER, values)}
        return [numbers[name] for name in names]

    def assign(self, board_id: int, pairs: Sequence[DrawnPair]) -> None:
        """Write assignments."""
        values = {
            "offers": plain(pair.offer for pair in pairs),
            "contexts": plain(pair.context for pair in pairs),
            "annotators": texts(pair.annotator for pair in pairs),
            "states": texts(pair.state for pair in pairs),
            "expiries": moments(pair.expires for pair in pairs),
        }
        self._session.execute(ASSIGN, {"board": board_id, **drawn_arrays(pairs), **values})

    def take_pool(self, board_id: int, limit: int) -> list[PoolContext]:
        """Offer contexts of the pool that nobody else is taking, in the order of their lots."""
        rows = self._session.execute(POOL, {"board": board_id, "limit": limit})
        return [PoolContext._make(row) for row in rows]

    def waiting(
        self, board_id: int, annotator: str | None, *, items: Iterable[int], limit: int, now: datetime
    ) -> list[Waiting]:
        """Drawn pairs that this annotator never had and nobody holds, locked until the transaction ends."""
        values = {"board": board_id, "annotator": annotator, "items": plain(items), "limit": limit, "now": now}
        return [Waiting._make(row) for row in self._session.execute(WAITING, values)]

    def in_hand(self, board_id: int, annotator: str | None, *, items: Iterable[int], now: datetime) -> bool:
        """Whether the pool holds something for the annotator, be it in the hands of another transaction."""
        values = {"board": board_id, "annotator": annotator, "items": plain(items), "now": now}
        return bool(self._session.execute(IN_HAND, values).scalar_one())

    def lease(self, ids: Sequence[UUID], annotator: str | None, expires: datetime) -> None:
        """Hand open pairs out."""
        values = {"state": "leased", "annotator": annotator, "expires_at": expires}
        self._session.execute(update(Assignment).where(Assignment.id.in_(ids)).values(values))

    def lapse(self, ids: Sequence[UUID]) -> None:
        """End leases that are given to somebody else."""
        self._session.execute(update(Assignment).where(Assignment.id.in_(ids)).values(state="lapsed"))

    def had(self, contexts: Iterable[int], annotator: str) -> set[tuple[int, int, int]]:
        """(context, left, right) of what the annotator was ever given on these contexts."""
        rows = self._session.execute(HAD, {"contexts": plain(contexts), "annotator": annotator})
        return {(context, left, right) for context, left, right in rows}

    def next_expiry(self, board_id: int) -> datetime | None:
        """When the first lease of a pool draw ends."""
        query = select(func.min(Assignment.expires_at)).where(
            Assignment.board_id == board_id, Assignment.state == "leased"
        )
        return self._session.scalar(query)

    def locked(self, board_id: int, ids: Iterable[UUID]) -> dict[UUID, Held]:
        """Those of the assignments that are the board's, locked until the transaction ends."""
        left, right = aliased(Item), aliased(Item)
        query = (
            select(
                *(Assignment.id, Assignment.state, Assignment.offer_id, Assignment.annotator, Assignment.propensity),
                *(Context.external_id, left.name, right.name),
            )
            .join(Context, Context.id == Assignment.context_id)
            .join(left, left.id == Assignment.left_id)
            .join(right, right.id == Assignment.right_id)
            .where(Assignment.board_id == board_id, Assignment.id.in_(list(ids)))
            .order_by(Assignment.id)
            .with_for_update(of=Assignment)
        )
        return {row.id: Held._make(row) for row in self._session.execute(query)}

    def settle(self, ids: Sequence[UUID], state: str, *, at: datetime | None = None, reason: str | None = None) -> None:
        """Write how leases ended: answered, or skipped with a reason."""
        values = {"state": state, "answered_at": at, "reason": reason}
        self._session.execute(update(Assignment).where(Assignment.id.in_(ids)).values(values))


def drawn_arrays(pairs: Sequence[DrawnPair]) -> dict[str, str]:
    """What was drawn, as statements are fed."""
    return {
        "ids": uuids(pair.id for pair in pairs),
        "lefts": plain(pair.left for pair in pairs),
        "rights": plain(pair.right for pair in pairs),
        "propensities": plain(pair.propensity for pair in pairs),
        "policies": uuids(pair.policy for pair in pairs),
    }
