"""Take votes in: one or ten thousand at a time, each created, a duplicate, or refused with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeGuard
from uuid import UUID

from sqlalchemy.exc import OperationalError

from app.db.assignments import Held
from app.db.ballots import Footing
from app.db.items import ItemRef
from app.db.unit_of_work import Collision, UnitOfWork, is_deadlock
from app.db.votes import VoteView
from app.domain.acquire import unknown_assignment, uuid_of
from app.domain.ballots import BALLOT, Ballot, BallotReader, answering
from app.domain.boards import Board, BoardConfig
from app.domain.errors import DomainError, Missing
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
from app.services import naming

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
    rows = _store_plain(uow, board, ballots, now)
    if rows is None:
        rows, _ = uow.boldly(partial(settle, uow, board, ballots, now), undone=Undone)
        uow.commit()
    return [outcome_of(row) for row in rows]


def is_plain(ballot: Ballot | DomainError, board: Board) -> TypeGuard[Ballot]:
    """Whether a ballot is on a pair, and asks for nothing to be looked at but its names, its id and its slot."""
    if isinstance(ballot, DomainError) or board.config.votes.per_voter_per_day is not None:
        return False
    return ballot.menu is None and ballot.ranking is None and ballot.assignment is None and ballot.offer is None


def plain_rows(board: Board, ballots: Sequence[Ballot], known: Mapping[str, ItemRef]) -> list[Row] | None:
    """Plain ballots as they are stored; None where one is refused or names an item that is not known."""
    if not all(ballot.left in known and ballot.right in known for ballot in ballots):
        return None
    rows = _read(board.config, ballots)
    if any(row.result is not None for row in rows):
        return None
    going = naming.find_items(board, rows, known)
    return rows if len(going) == len(rows) else None


def _store_plain(
    uow: UnitOfWork, board: Board, ballots: Sequence[Ballot | DomainError], now: datetime
) -> list[Row] | None:
    """Store votes of which nothing has to be looked at, and commit; None, and nothing done, where it does."""
    plain = [ballot for ballot in ballots if is_plain(ballot, board)]
    if not plain or len(plain) < len(ballots):
        return None
    names = {name for ballot in plain for name in (ballot.left, ballot.right) if name is not None}
    known = uow.items.resolve(board.id, names)
    rows = plain_rows(board, plain, known)
    if rows is None:
        return None
    footing = Footing(board, (), {name: known[name].id for name in names})
    try:
        stored = uow.ballots.store([(footing, rows)], now=now)
    except OperationalError as error:
        if not is_deadlock(error):
            raise
        stored = None
    if stored is None:
        uow.release()
        return None
    for row in rows:
        row.result = Result("created", row.client_id)
    uow.announce_votes(board.id)
    uow.commit()
    return rows


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
        left=row.left or None,
        right=row.right or None,
        outcome=row.outcome,
        voter=ballot.voter,
        voter_type=ballot.voter_type,
        propensity=ballot.propensity,
        created_at=ballot.created_at or now,
        received_at=received_at,
        ranking=row.ranking,
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
    found = uow.votes.look(board.id, naming.named(answering), counted=counted)
    board = uow.boards.as_of(board, found.changed_at)
    if (board.config.votes.per_voter_per_day is not None) > counted:
        uow.votes.lock(board.id, counted=True)
    rows = _read(board.config, answering)
    going = naming.find_items(board, [row for row in rows if row.result is None], found.items)
    going = settle_ids(going, found.digests)
    going = settle_assignments(going, held) if held else going
    touched = going
    wrote = naming.create_items(uow, board, going)
    going, placing = naming.place(uow, board, going, found.contexts)
    placed = going
    going = settle_slots(placed, found.heads, revotes=board.config.votes.revotes)
    going = _limit(uow, board, going, now)
    _check_refused(uow, board, placed)
    if (wrote or placing) and len(going) < len(touched):
        raise Undone([row.error or ballot for row, ballot in zip(rows, ballots, strict=True)])
    if going:
        _insert(uow, board, going, now)
    return rows, found.received_at


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


def _limit(uow: UnitOfWork, board: Board, rows: list[Row], now: datetime) -> list[Row]:
    limit = board.config.votes.per_voter_per_day
    if limit is None:
        return rows
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    voters = {row.ballot.voter for row in rows if row.ballot.voter is not None}
    wait = int((today + timedelta(days=1) - now).total_seconds()) + 1
    return settle_limit(rows, uow.votes.counts(board.id, voters, today), limit, retry_after=wait)


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
