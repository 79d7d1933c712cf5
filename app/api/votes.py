"""Votes over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import Response
from pydantic import Field, WithJsonSchema

from app.api.deps import MaybeCaller, PortsOf, ReadableBoard, VotableBoard, Work
from app.api.pages import Cursor, Limit, cursor_after, position
from app.api.problems import describe
from app.api.routing import api_router
from app.db.votes import VoteView as StoredVote
from app.domain.ballots import Ballot
from app.domain.boards import Board
from app.domain.votes import Result
from app.services import votes

router = api_router(prefix="/v1/boards/{board}/votes", tag="votes")
MOST = 10_000


@dataclass(frozen=True, slots=True)
class VoteContext:
    """The context of a stored vote."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteView:
    """A stored vote; `voter` is shown to holders of a key only."""

    id: UUID
    context: VoteContext | None
    offer: str | None
    left: str
    right: str
    outcome: str
    voter: str | None
    voter_type: str
    propensity: float | None
    created_at: datetime
    received_at: datetime


@dataclass(frozen=True, slots=True)
class VotePage:
    """Votes in the order in which they came in."""

    votes: list[VoteView]
    next: str | None


@dataclass(frozen=True, slots=True)
class VoteBatch:
    """Votes to store; each is read on its own."""

    votes: Annotated[
        list[Annotated[Any, WithJsonSchema({"$ref": "#/components/schemas/Ballot"})]], Field(max_length=MOST)
    ]


BATCH_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The fate of each vote, in order",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/BatchResults"}}},
    }
}


@router.post("", status_code=201, responses={200: {"model": VoteView, "description": "duplicate: the vote as it is"}})
def record(board: VotableBoard, ballot: Ballot, work: Work, ports: PortsOf, response: Response) -> VoteView:
    """Store a vote. The answer is sent once the vote is committed; sending it again under its `id` is harmless."""
    view, new = votes.record_one(work, board, ballot, now=datetime.now(UTC))
    ports.news.publish(board.id, "votes")
    response.status_code = 201 if new else 200
    return _view(board, view, named=True)


@router.post("/batch", response_class=Response, responses=BATCH_ANSWER)
def record_batch(board: VotableBoard, batch: VoteBatch, work: Work, ports: PortsOf) -> Response:
    """Store up to 10,000 votes. Good ones are kept when others are refused."""
    results = votes.record(work, board, votes.read_ballots(batch.votes), now=datetime.now(UTC))
    ports.news.publish(board.id, "votes")
    body = orjson.dumps({"results": [_result(result) for result in results]})
    return Response(body, media_type="application/json")


@router.get("")
def list_votes(
    board: ReadableBoard, work: Work, caller: MaybeCaller, limit: Limit = 100, cursor: Cursor = None
) -> VotePage:
    """The board's votes, excluded ones too."""
    found = work.votes.page(board.id, after=position(cursor), limit=limit)
    views = [_view(board, vote, named=caller is not None) for vote in found]
    return VotePage(views, cursor_after([vote.id for vote in found], limit))


def _view(board: Board, vote: StoredVote, *, named: bool) -> VoteView:
    return VoteView(
        id=vote.client_id,
        context=None if vote.context is None else VoteContext(vote.context),
        offer=vote.offer,
        left=vote.left,
        right=vote.right,
        outcome=board.config.categories[vote.outcome].name,
        voter=vote.voter if named else None,
        voter_type=vote.voter_type,
        propensity=vote.propensity,
        created_at=vote.created_at,
        received_at=vote.received_at,
    )


def _result(result: Result) -> dict[str, Any]:
    document: dict[str, Any] = {"status": result.status, "vote": result.vote}
    if result.error is not None:
        document["problem"] = describe(result.error)
    return document
