"""What becomes of the votes of a batch: created, a duplicate, or refused; decided in order, from what is stored.

Every function takes the rows whose fate is open, and what the database holds about them, and settles some.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, Protocol
from uuid import UUID

from app.domain.acquire import not_open
from app.domain.ballots import Ballot
from app.domain.errors import Conflict, DomainError, limited
from app.domain.menus import Ranking

Status = Literal["created", "duplicate", "rejected"]
Slot = tuple[int, int, int, str] | tuple[int, tuple[int, ...], str]
"""Context, left, right, voter, or context, menu, voter: what one voter answers once."""


class Result(NamedTuple):
    """The fate of a vote: its public id unless it was refused, then why."""

    status: Status
    vote: UUID | None = None
    error: DomainError | None = None


class Head(NamedTuple):
    """The newest vote of a slot; `vote` is its number, or its public id while it is not stored yet."""

    revision: int
    vote: int | UUID


class Lease(Protocol):
    """A drawn pair that was handed out."""

    @property
    def id(self) -> UUID:
        """Of the assignment."""

    @property
    def state(self) -> str:
        """Whether it can still be answered: `leased`."""

    @property
    def offer(self) -> int:
        """The draw's number."""


class Row:
    """A vote on its way in: the ballot, what its names stand for, and its result once settled.

    One on a menu has a `ranking` and `item_ids` by the items' own names, 0 of new ones, in place of sides and outcome.
    """

    __slots__ = (
        "assignment_id",
        "ballot",
        "client_id",
        "context_id",
        "digest",
        "features",
        "item_ids",
        "left",
        "left_id",
        "offer_id",
        "outcome",
        "ranking",
        "result",
        "revision",
        "right",
        "right_id",
        "supersedes",
        "twin",
    )

    def __init__(self, ballot: Ballot, outcome: int | None, features: Mapping[str, Any] | None) -> None:
        self.ballot = ballot
        self.outcome = outcome
        self.features = features
        self.left = self.right = ""
        self.left_id = self.right_id = 0
        self.ranking: Ranking | None = None
        self.item_ids: dict[str, int] = {}
        self.context_id: int | None = None
        self.offer_id: int | None = None
        self.assignment_id: UUID | None = None
        self.client_id: UUID
        self.digest = b""
        self.revision = 0
        self.supersedes: int | UUID | None = None
        self.twin: Row | None = None
        self.result: Result | None = None

    @property
    def slot(self) -> Slot | None:
        """What the voter may answer once; None where the voter or the context has no name."""
        if self.context_id is None or self.ballot.voter is None:
            return None
        if self.ranking is not None:
            return self.context_id, self.menu, self.ballot.voter
        return self.context_id, self.left_id, self.right_id, self.ballot.voter

    @property
    def menu(self) -> tuple[int, ...]:
        """Numbers of the menu's items, sorted; of a pair nothing."""
        return tuple(sorted(self.item_ids.values())) if self.item_ids else ()

    @property
    def error(self) -> DomainError | None:
        """Why the row was refused, if it was."""
        return None if self.result is None else self.result.error

    def refuse(self, error: DomainError) -> None:
        """Settle the row as rejected."""
        self.result = Result("rejected", None, error)


def settle_ids(rows: Iterable[Row], stored: Mapping[UUID, bytes]) -> list[Row]:
    """Settle rows whose id is taken, in the database or earlier in the batch; return the others.

    Parameters
    ----------
    stored : digests of the stored votes that have one of the rows' ids.
    """
    first: dict[UUID, Row] = {}
    rest = []
    for row in rows:
        key = row.ballot.id
        if key is None:
            rest.append(row)
            continue
        known = stored.get(key) or (first[key].digest if key in first else None)
        if known is None:
            first[key] = row
            rest.append(row)
        elif known != row.digest:
            row.refuse(Conflict("vote-id-taken", "another vote has this id", path="id", got=str(key)))
        elif key in first:
            row.twin = first[key]
        else:
            row.result = Result("duplicate", key)
    return rest


def settle_assignments(rows: Iterable[Row], held: Mapping[str, Lease]) -> list[Row]:
    """Settle rows whose assignment cannot be answered any more; return the others, with the draw that they answer.

    A lease that ran out is answered late as long as its pair was not given to somebody else.

    Parameters
    ----------
    held : the assignments by their ids as sent.
    """
    used: set[str] = set()
    rest = []
    for row in rows:
        name = row.ballot.assignment
        if name is not None:
            lease = held[name]
            state = "answered" if name in used else lease.state
            if state != "leased":
                row.refuse(not_open(name, state))
                continue
            used.add(name)
            row.assignment_id, row.offer_id = lease.id, lease.offer
        rest.append(row)
    return rest


def settle_limit(rows: Iterable[Row], counts: Mapping[str, int], limit: int, *, retry_after: int) -> list[Row]:
    """Settle rows beyond what their voter may send in a day; return the others.

    Parameters
    ----------
    counts : votes that each voter has sent today.
    retry_after : seconds until tomorrow.
    """
    counted = dict(counts)
    rest = []
    for row in rows:
        voter = row.ballot.voter
        if voter is None:
            rest.append(row)
            continue
        counted[voter] = counted.get(voter, 0) + 1
        if counted[voter] <= limit:
            rest.append(row)
        else:
            row.refuse(limited("voter-limit", f"a voter may send {limit} votes a day", retry_after=retry_after))
    return rest


def settle_slots(rows: Iterable[Row], heads: Mapping[Slot, Head], *, revotes: bool) -> list[Row]:
    """Settle rows whose voter has answered before, unless that is allowed; return the others.

    Where re-votes are allowed each return row has its revision and names the vote it supersedes.
    """
    newest = dict(heads)
    rest = []
    for row in rows:
        slot = row.slot
        head = None if slot is None else newest.get(slot)
        if head is not None and not revotes:
            about = "ordered pair" if row.ranking is None else "menu"
            detail = f"this voter has voted on this context and {about}"
            row.refuse(Conflict("second-vote", detail, path="voter", got=row.ballot.voter))
            continue
        if head is not None:
            row.revision, row.supersedes = head.revision + 1, head.vote
        if slot is not None:
            newest[slot] = Head(row.revision, row.client_id)
        rest.append(row)
    return rest


def order(row: Row) -> tuple[bool, int, int, int, tuple[int, ...], str, int, int]:
    """The order in which every writer inserts, so that two of them never wait for each other; re-votes come later."""
    where = (row.ranking is not None, row.context_id or 0, row.left_id, row.right_id, row.menu)
    return *where, row.ballot.voter or "", row.revision, row.client_id.int


def outcome_of(row: Row) -> Result:
    """The row's result; a row that repeats an earlier one of its batch shares its fate."""
    if row.twin is not None:
        first = outcome_of(row.twin)
        return first if first.status == "rejected" else Result("duplicate", first.vote)
    assert row.result is not None
    return row.result
