"""Take votes in: one or ten thousand at a time, each created, a duplicate, or refused with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from app.db.assignments import Held
from app.db.items import ItemRef
from app.db.unit_of_work import Collision, UnitOfWork
from app.db.votes import Named, VoteView
from app.domain.acquire import unknown_assignment, uuid_of
from app.domain.ballots import BALLOT, Ballot, BallotReader, answering, digest
from app.domain.boards import Board, BoardConfig
from app.domain.contexts import Known, Wanted, contradiction
from app.domain.errors import DomainError, Invalid, Missing
from app.domain.parsing import parse
from app.domain.votes import (
    Result,
    Row,
    order,
    outcome_of,
    settle_assignments,
    settle_ids,
    settle_limit,
    settle_slots,
)

NO_BALLOT = Ballot()


class Undone(Exception):
    """Votes were refused after they had left a trace: a new item, a context that counts as offered.

    Parameters
    ----------
    ballots : the same votes, with what the refused ones were refused for in their place.
    """

    def __init__(self, ballots: Sequence[Ballot | DomainError]) -> None:
        super().__init__()
        self.ballots = ballots


def record(uow: UnitOfWork, board: Board, ballots: Sequence[Ballot | DomainError], *, now: datetime) -> list[Result]:
    """Store votes and commit; the fate of each, in order. What `settle` says of the parameters holds here."""
    rows, _ = uow.boldly(partial(settle, uow, board, ballots, now), undone=Undone)
    uow.commit()
    return [outcome_of(row) for row in rows]


def settle(
    uow: UnitOfWork, board: Board, ballots: Sequence[Ballot | DomainError], now: datetime, careful: bool
) -> tuple[list[Row], datetime]:
    """Store votes as soon as the caller commits; what became of each, in order, and when the new ones were received.

    Parameters
    ----------
    ballots : as sent, or why one could not be read, which becomes its result.
    now : the time of votes that bring none, and the day in which votes per voter are counted.
    careful : whether it is tried again from a savepoint where others come in between or something was written for
        votes that are refused; else that is the caller's, by `UnitOfWork.boldly`.
    """
    while True:
        action = partial(_settle, uow, board, ballots, now)
        try:
            rows, received_at = uow.attempt(action) if careful else action()
        except Undone as undone:
            if not careful:
                raise
            # Each round refuses at least one more.
            ballots = undone.ballots
        else:
            if any(row.result is not None and row.result.status == "created" for row in rows):
                uow.announce_votes(board.id)
            return rows, received_at


def view_of(row: Row, *, now: datetime, received_at: datetime) -> VoteView:
    """A new vote as it would be read back; of one that answers an assignment the name of its offer is not known."""
    ballot = row.ballot
    return VoteView(
        client_id=row.client_id,
        context=None if ballot.context is None else ballot.context.id,
        offer=ballot.offer,
        left=row.left,
        right=row.right,
        outcome=row.outcome,
        voter=ballot.voter,
        voter_type=ballot.voter_type,
        propensity=ballot.propensity,
        created_at=ballot.created_at or now,
        received_at=received_at,
    )


def read_ballots(documents: Sequence[Any]) -> list[Ballot | DomainError]:
    """Ballots from documents, each on its own: one that does not fit leaves the others alone."""
    ballots: list[Ballot | DomainError] = []
    for document in documents:
        try:
            ballots.append(parse(BALLOT, document))
        except DomainError as error:
            ballots.append(error)
    return ballots


def number(uow: UnitOfWork, board: Board, vote: UUID) -> int:
    """The server's number of the vote of this public id."""
    numbers = uow.votes.numbers(board.id, [vote])
    if vote not in numbers:
        raise Missing("unknown-vote", "the board has no such vote", got=str(vote))
    return numbers[vote]


def _settle(
    uow: UnitOfWork, board: Board, ballots: Sequence[Ballot | DomainError], now: datetime
) -> tuple[list[Row], datetime]:
    counted = board.config.votes.per_voter_per_day is not None
    held = _held(uow, board, ballots, counted)
    answering = [_answering(ballot, held) for ballot in ballots] if held is not None else ballots
    found = uow.votes.look(board.id, _named(answering), counted=counted)
    board = uow.boards.as_of(board, found.changed_at)
    if (board.config.votes.per_voter_per_day is not None) > counted:
        uow.votes.lock(board.id, counted=True)
    rows = _read(board.config, answering)
    going = _name(board, [row for row in rows if row.result is None], found.items)
    going = settle_ids(going, found.digests)
    going = settle_assignments(going, held) if held else going
    touched = going
    wrote = _create_items(uow, board, going)
    going, placing = _place(uow, board, going, found.contexts)
    placed = going
    going = settle_slots(placed, found.heads, revotes=board.config.votes.revotes)
    going = _limit(uow, board, going, now)
    _check_refused(uow, board, placed)
    if (wrote or placing) and len(going) < len(touched):
        raise Undone([row.error or ballot for row, ballot in zip(rows, ballots, strict=True)])
    if going:
        _insert(uow, board, going, now)
    return rows, found.received_at


def _named(ballots: Sequence[Ballot | DomainError]) -> Named:
    """What the votes name, whether or not they turn out to be votes."""
    items, ids, contexts, slots = set[str](), list[UUID](), set[str](), set[tuple[str, str, str, str]]()
    for each in ballots:
        if isinstance(each, DomainError) or each.left is None or each.right is None:
            continue
        items.update((each.left, each.right))
        if each.id is not None:
            ids.append(each.id)
        if each.context is not None:
            contexts.add(each.context.id)
            if each.voter is not None:
                slots.add((each.context.id, each.left, each.right, each.voter))
    return Named(items, ids, contexts, slots)


def _held(
    uow: UnitOfWork, board: Board, ballots: Sequence[Ballot | DomainError], counted: bool
) -> dict[str, Held] | None:
    """The assignments that are answered, locked, by their ids as they were sent; None where there are none."""
    sent = {each.assignment for each in ballots if isinstance(each, Ballot) and each.assignment is not None}
    if not sent:
        return None
    uow.votes.lock(board.id, counted=counted)
    numbers = {name: number for name in sent if (number := uuid_of(name)) is not None}
    found = uow.assignments.locked(board.id, set(numbers.values())) if numbers else {}
    return {name: found[number] for name, number in numbers.items() if number in found}


def _answering(ballot: Ballot | DomainError, held: Mapping[str, Held]) -> Ballot | DomainError:
    """The ballot with what its assignment says."""
    if isinstance(ballot, DomainError) or ballot.assignment is None:
        return ballot
    if ballot.assignment not in held:
        return unknown_assignment(ballot.assignment)
    found = held[ballot.assignment]
    try:
        return answering(ballot, found._asdict(), found.annotator)
    except DomainError as error:
        return error


def _read(config: BoardConfig, ballots: Sequence[Ballot | DomainError]) -> list[Row]:
    reader, rows = BallotReader(config), []
    for ballot in ballots:
        if isinstance(ballot, DomainError):
            rows.append(_refused(NO_BALLOT, ballot))
            continue
        try:
            outcome, features = reader.read(ballot)
        except DomainError as error:
            rows.append(_refused(ballot, error))
        else:
            rows.append(Row(ballot, outcome, features))
    return rows


def _refused(ballot: Ballot, error: DomainError) -> Row:
    row = Row(ballot, 0, None)
    row.refuse(error)
    return row


def _name(board: Board, rows: Sequence[Row], known: Mapping[str, ItemRef]) -> list[Row]:
    going = []
    for row in rows:
        error = _name_one(row, known, board.config.open_items)
        if error is None:
            going.append(row)
        else:
            row.refuse(error)
    return going


def _name_one(row: Row, known: Mapping[str, ItemRef], open_items: bool) -> DomainError | None:
    ballot = row.ballot
    assert ballot.left is not None
    assert ballot.right is not None
    for path, name in (("left", ballot.left), ("right", ballot.right)):
        if name not in known and not open_items:
            return Invalid("unknown-item", f"the board has no item {name!r}", path=path, expected="an item", got=name)
    left, right = known.get(ballot.left), known.get(ballot.right)
    row.left = ballot.left if left is None else left.name
    row.right = ballot.right if right is None else right.name
    if row.left == row.right:
        detail = "both names are of one item"
        return Invalid("same-item", detail, path="right", expected="another item", got=ballot.right)
    row.left_id = 0 if left is None else left.id
    row.right_id = 0 if right is None else right.id
    row.client_id = ballot.id or uuid4()
    row.digest = digest(ballot, row.left, row.right, row.features)
    return None


def _limit(uow: UnitOfWork, board: Board, rows: list[Row], now: datetime) -> list[Row]:
    limit = board.config.votes.per_voter_per_day
    if limit is None:
        return rows
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    voters = {row.ballot.voter for row in rows if row.ballot.voter is not None}
    wait = int((today + timedelta(days=1) - now).total_seconds()) + 1
    return settle_limit(rows, uow.votes.counts(board.id, voters, today), limit, retry_after=wait)


def _create_items(uow: UnitOfWork, board: Board, rows: Sequence[Row]) -> bool:
    """Create the items that are new; whether there are any."""
    new = {row.left for row in rows if not row.left_id} | {row.right for row in rows if not row.right_id}
    if not new:
        return False
    uow.items.lock(board.id)
    known = uow.items.resolve(board.id, new)
    if any(known):
        raise Collision
    known = uow.items.create(board.id, new)
    for row in rows:
        row.left_id = row.left_id or known[row.left].id
        row.right_id = row.right_id or known[row.right].id
    return True


def _place(uow: UnitOfWork, board: Board, rows: Sequence[Row], stored: Mapping[str, Known]) -> tuple[list[Row], bool]:
    """The rows whose contexts are what they say, and whether anything was written for that."""
    wanted = _wanted(rows)
    if not wanted:
        return list(rows), False
    known, created = uow.contexts.ensure(board.id, wanted, stored)
    going = []
    for row in rows:
        if row.ballot.context is not None:
            context = known[row.ballot.context.id]
            row.context_id = context.id
            error = None if row.features is None else contradiction(Wanted(row.features), context)
            if error is not None:
                row.refuse(error.under("context"))
                continue
        going.append(row)
    newly = {known[name].id: each for name, each in wanted.items() if not known[name].offered}
    if newly:
        uow.contexts.learn(newly)
    named = board.config.unit == "context" and _name_offers(uow, board, going)
    return going, bool(created or newly or named)


def _wanted(rows: Sequence[Row]) -> dict[str, Wanted]:
    """The contexts of votes: they were offered to somebody, and so are no part of the pool."""
    features: dict[str, Mapping[str, Any] | None] = {}
    for row in rows:
        context = row.ballot.context
        if context is not None and features.get(context.id) is None:
            features[context.id] = row.features
    return {name: Wanted(known, offered=True) for name, known in features.items()}


def _name_offers(uow: UnitOfWork, board: Board, rows: Sequence[Row]) -> bool:
    """Store the offers that the rows name; whether they name any."""
    named = [(row, row.context_id, row.ballot.offer) for row in rows if row.ballot.offer is not None]
    pairs = {(context, offer) for _, context, offer in named if context is not None and offer is not None}
    offers = uow.contexts.ensure_offers(board.id, pairs) if pairs else {}
    for row, context, offer in named:
        if context is not None and offer is not None:
            row.offer_id = offers[context, offer]
    return bool(pairs)


def _check_refused(uow: UnitOfWork, board: Board, rows: Sequence[Row]) -> None:
    """Start again where a refused vote is no second vote but the same one, stored since its id was looked for."""
    refused = [row.client_id for row in rows if row.result is not None and row.ballot.id is not None]
    if refused and uow.votes.digests(board.id, refused):
        raise Collision


def _insert(uow: UnitOfWork, board: Board, rows: Sequence[Row], now: datetime) -> None:
    if uow.votes.insert(board.id, sorted(rows, key=order), now=now) != len(rows):
        raise Collision
    for row in rows:
        row.result = Result("created", row.client_id)
    answered = [row.assignment_id for row in rows if row.assignment_id is not None]
    if answered:
        uow.assignments.settle(answered, "answered", at=now)
    replaced = [row.supersedes for row in rows if row.supersedes is not None]
    if replaced:
        new = uow.votes.numbers(board.id, [vote for vote in replaced if isinstance(vote, UUID)])
        uow.exclusions.supersede(board.id, [new[vote] if isinstance(vote, UUID) else vote for vote in replaced])
