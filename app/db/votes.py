"""Votes: inserted in bulk from arrays, read by id, by slot and page by page."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import CursorResult, Select, func, select, text
from sqlalchemy.orm import Session, aliased

from app.db import menus
from app.db.arrays import document, texts, uuids
from app.db.boards import CHANGED
from app.db.columns import of_pairs, of_places
from app.db.contexts import FIND
from app.db.items import RESOLVE, ItemRef
from app.db.locks import ALONE, SHARED, Lock, hold, share
from app.db.models.contexts import Context, Offer
from app.db.models.items import Item
from app.db.models.votes import Vote
from app.db.together import Statement, together
from app.domain.contexts import Known
from app.domain.menus import Ranking
from app.domain.votes import Head, Row, Slot

COLUMNS = {
    "client_id": "uuid",
    "digest": "bytea",
    "context_id": "bigint",
    "offer_id": "bigint",
    "assignment_id": "uuid",
    "left_id": "bigint",
    "right_id": "bigint",
    "outcome": "smallint",
    "voter": "text",
    "voter_type": "text",
    "propensity": "float8",
    "revision": "smallint",
    "created_at": "timestamptz",
}

INSERT = text(
    f"INSERT INTO votes (board_id, kind, {', '.join(COLUMNS)}) SELECT :board, 'pair', sent.* FROM unnest("
    + ", ".join(f"CAST(:{name} AS {kind}[])" for name, kind in COLUMNS.items())
    + ") AS sent ON CONFLICT DO NOTHING"
)

# A plan made while there were few votes is kept. Any index that begins with the board looks as good then as the one by
# ids, and would read all votes of the board once there are many: the order leaves only that one.
BY_ID = text("""
SELECT client_id, digest, known.id FROM unnest(CAST(:ids AS uuid[])) AS sent (id)
CROSS JOIN LATERAL (
    SELECT board_id, client_id, digest, id FROM votes
    WHERE (board_id, client_id) >= (:board, sent.id) ORDER BY board_id, client_id LIMIT 1
) AS known
WHERE board_id = :board AND client_id = sent.id
""")

# A plan made while a table was small is kept: it must not read the whole table then.
BY_INDEX = text("SELECT set_config('enable_seqscan', 'off', true)")

# Slot by slot: planned as one join, the votes of the whole board are read while the table has no statistics yet.
HEADS = text("""
SELECT contexts.id, one.item_id, other.item_id, slot.voter, head.revision, head.id
FROM unnest(CAST(:contexts AS text[]), CAST(:lefts AS text[]), CAST(:rights AS text[]), CAST(:voters AS text[]))
     AS slot (context, one, other, voter)
CROSS JOIN LATERAL (
    SELECT id FROM contexts WHERE board_id = :board AND external_id = slot.context LIMIT 1
) AS contexts
JOIN item_names AS one ON one.board_id = :board AND one.name = slot.one
JOIN item_names AS other ON other.board_id = :board AND other.name = slot.other
CROSS JOIN LATERAL (
    SELECT revision, id FROM votes
    WHERE board_id = :board AND context_id = contexts.id AND left_id = one.item_id AND right_id = other.item_id
        AND voter = slot.voter
    ORDER BY revision DESC LIMIT 1
) AS head
""")


class VoteView(NamedTuple):
    """A vote with its names: a ranking in place of sides and outcome where it is on a menu."""

    client_id: UUID
    context: str | None
    offer: str | None
    left: str | None
    right: str | None
    outcome: int | None
    voter: str | None
    voter_type: str
    propensity: float | None
    created_at: datetime
    received_at: datetime
    ranking: Ranking | None = None


class Named(NamedTuple):
    """What votes name: items, votes by their ids, contexts, and slots.

    Slots are (context, left, right, voter), those of `menus` (context, menu, voter).
    """

    items: Collection[str]
    votes: Collection[UUID]
    contexts: Collection[str]
    slots: Collection[tuple[str, str, str, str]]
    menus: Collection[tuple[str, Sequence[str], str]]


class Found(NamedTuple):
    """What of it is stored, when the board was changed last, and when votes stored now will have been received."""

    received_at: datetime
    changed_at: datetime
    items: dict[str, ItemRef]
    digests: dict[UUID, bytes]
    contexts: dict[str, Known]
    heads: dict[Slot, Head]


class VoteRepository:
    """Votes of all boards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def lock(self, board_id: int, *, counted: bool) -> datetime:
        """What every writer of votes takes first, and the time at which its votes will have been received.

        `counted`: alone, because votes per voter are counted.
        """
        received_at = share(self._session, Lock.VOTES, board_id)
        if counted:
            hold(self._session, Lock.VOTERS, board_id)
        return received_at

    def digests(self, board_id: int, client_ids: Iterable[UUID]) -> dict[UUID, bytes]:
        """Content hashes of the stored ones among these votes."""
        rows = self._session.execute(BY_ID, {"board": board_id, "ids": uuids(client_ids)})
        return {row.client_id: row.digest for row in rows}

    def numbers(self, board_id: int, client_ids: Iterable[UUID]) -> dict[UUID, int]:
        """The server's numbers of the stored ones among these votes."""
        rows = self._session.execute(BY_ID, {"board": board_id, "ids": uuids(client_ids)})
        return {row.client_id: row.id for row in rows}

    def counts(self, board_id: int, voters: Iterable[str], since: datetime) -> dict[str, int]:
        """How many votes of each voter were received since then."""
        query = (
            select(Vote.voter, func.count())
            .where(Vote.board_id == board_id, Vote.voter == func.any(list(voters)), Vote.received_at >= since)
            .group_by(Vote.voter)
        )
        return {str(voter): count for voter, count in self._session.execute(query)}

    def look(self, board_id: int, named: Named, *, counted: bool) -> Found:
        """Take the locks of `lock`, then look up all that votes name, in one round trip."""
        board: dict[str, Any] = {"board": board_id}
        asked: list[Statement] = [(BY_INDEX, {}), (SHARED, {"lock": int(Lock.VOTES), **board})]
        asked += [(ALONE, {"lock": int(Lock.VOTERS), **board})] if counted else []
        locks = len(asked)
        asked += [(CHANGED, board), (RESOLVE, {"names": texts(named.items), **board})]
        asked += [(BY_ID, {"ids": uuids(named.votes), **board}), (FIND, {"ids": texts(named.contexts), **board})]
        if named.slots:
            columns = zip(("contexts", "lefts", "rights", "voters"), zip(*named.slots, strict=True), strict=True)
            asked.append((HEADS, {name: texts(column) for name, column in columns} | board))
        if named.menus:
            asked.append((menus.HEADS, {"slots": document([*named.menus]), **board}))
        rows = together(self._session, asked)
        changed, items, votes, contexts, *heads = rows[locks:]
        return Found(
            received_at=rows[1][0][0],
            changed_at=changed[0][0],
            items={row[0]: ItemRef(row[1], row[2]) for row in items},
            digests={row[0]: row[1] for row in votes},
            contexts={row[0]: Known(*row[1:]) for row in contexts},
            heads={_slot(row): Head(*row[-2:]) for found in heads for row in found},
        )

    def insert(self, board_id: int, rows: Sequence[Row], *, now: datetime) -> int:
        """Insert what does not collide with a stored vote; how many that were."""
        rankings = [row for row in rows if row.ranking is not None]
        pairs = [row for row in rows if row.ranking is None] if rankings else rows
        stored = menus.insert(self._session, board_id, rankings, now=now) if rankings else 0
        return stored + (self._insert_pairs(board_id, pairs, now=now) if pairs else 0)

    def _insert_pairs(self, board_id: int, rows: Sequence[Row], *, now: datetime) -> int:
        values = {**of_pairs(rows, now=now), **of_places(rows)}
        values["assignment_id"] = uuids([row.assignment_id for row in rows])
        result = self._session.execute(INSERT, {"board": board_id, **values})
        assert isinstance(result, CursorResult)
        return result.rowcount

    def views(self, board_id: int, client_ids: Iterable[UUID]) -> dict[UUID, VoteView]:
        """Those of the votes that are stored, by their public ids."""
        rows = self._session.execute(_views(board_id).where(Vote.client_id == func.any(list(client_ids))))
        return {view.client_id: view for _, view in self._named(rows)}

    def page(self, board_id: int, *, after: int, limit: int) -> list[tuple[int, VoteView]]:
        """The votes after a number, with their numbers, in the order in which they came in."""
        query = _views(board_id).where(Vote.id > after).order_by(Vote.id).limit(limit)
        return self._named(self._session.execute(query))

    def _named(self, rows: Iterable[Any]) -> list[tuple[int, VoteView]]:
        """Votes with their numbers, rankings by the names of their items."""
        found = list(rows)
        rankings = menus.rankings(self._session, (row[-2:] for row in found))
        return [(row[0], VoteView._make((*row[1:-2], ranking))) for row, ranking in zip(found, rankings, strict=True)]


def _slot(row: tuple[Any, ...]) -> Slot:
    """Of a row that begins with it: three columns of a ranking's, four of a pair's."""
    if len(row) == 5:
        return row[0], tuple(row[1]), row[2]
    return row[0], row[1], row[2], row[3]


def _views(board_id: int) -> Select[*tuple[Any, ...]]:
    left, right = aliased(Item), aliased(Item)
    return (
        select(
            *(Vote.id, Vote.client_id, Context.external_id, Offer.external_id, left.name, right.name, Vote.outcome),
            *(Vote.voter, Vote.voter_type, Vote.propensity, Vote.created_at, Vote.received_at),
            *(Vote.kind, Vote.ballot),
        )
        .outerjoin(left, left.id == Vote.left_id)
        .outerjoin(right, right.id == Vote.right_id)
        .outerjoin(Context, Context.id == Vote.context_id)
        .outerjoin(Offer, Offer.id == Vote.offer_id)
        .where(Vote.board_id == board_id)
    )
