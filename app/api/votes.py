"""Votes over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from fastapi import Path, Request, Response
from pydantic import Field, WithJsonSchema

from app.api.deps import Documented, MaybeCaller, PortsOf, ReadableBoard, VotableBoard, Work
from app.api.door import UNKNOWN, call_of, first_of_each
from app.api.pages import Cursor, Limit, cursor_after, position
from app.api.problems import describe
from app.api.routing import api_router
from app.db.votes import VoteView as StoredVote
from app.domain.boards import Board
from app.domain.menus import Kind
from app.domain.votes import Result
from app.services import votes

router = api_router(prefix="/v1/boards/{board}/votes", tag="votes")
MOST = 10_000
Slug = Annotated[str, Path(alias="board", description="slug")]


@dataclass(frozen=True, slots=True)
class VoteContext:
    """The context of a stored vote."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteView:
    """A stored vote, of an ordered pair or of a menu; `voter` is shown to holders of a key only."""

    id: UUID
    context: VoteContext | None
    offer: str | None
    left: str | None
    right: str | None
    outcome: str | None
    kind: Literal["pair"] | Kind
    menu: Sequence[str] | None
    ranking: Sequence[Sequence[str]] | None
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


ANSWERS: dict[int | str, dict[str, Any]] = {
    201: {"model": VoteView, "description": "the vote, committed"},
    200: {"model": VoteView, "description": "duplicate: the vote as it is"},
}
QUESTION: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Ballot"}}},
    }
}
BATCH_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The fate of each vote, in order",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/BatchResults"}}},
    }
}


@router.post("", status_code=201, response_class=Response, responses=ANSWERS, openapi_extra=QUESTION)
async def record(request: Request, board: Slug, ports: PortsOf, _: Documented) -> Response:
    """Store a vote. The answer is sent once the vote is committed; sending it again under its `id` is harmless.

    It is a 503 with `Retry-After` where too many votes wait, or the database is away; send the vote again then.
    """
    address = request.client.host if request.client else UNKNOWN
    headers = first_of_each(request.headers.raw)
    return await ports.votes.respond(call_of(board, headers, await request.body(), address=address))


@router.post("/batch", response_class=Response, responses=BATCH_ANSWER)
def record_batch(board: VotableBoard, batch: VoteBatch, work: Work) -> Response:
    """Store up to 10,000 votes. Good ones are kept when others are refused."""
    results = votes.record(work, board, votes.read_ballots(batch.votes), now=datetime.now(UTC))
    body = orjson.dumps({"results": [_result(result) for result in results]})
    return Response(body, media_type="application/json")


@router.get("")
def list_votes(
    board: ReadableBoard, work: Work, caller: MaybeCaller, limit: Limit = 100, cursor: Cursor = None
) -> VotePage:
    """The board's votes, excluded ones too."""
    found = work.votes.page(board.id, after=position(cursor), limit=limit)
    views = [_view(board, vote, named=caller is not None) for _, vote in found]
    return VotePage(views, cursor_after([number for number, _ in found], limit))


def _view(board: Board, vote: StoredVote, *, named: bool) -> VoteView:
    return VoteView(
        id=vote.client_id,
        context=None if vote.context is None else VoteContext(vote.context),
        offer=vote.offer,
        left=vote.left,
        right=vote.right,
        outcome=None if vote.outcome is None else board.config.categories[vote.outcome].name,
        kind="pair" if vote.ranking is None else vote.ranking.kind,
        menu=None if vote.ranking is None else vote.ranking.menu,
        ranking=None if vote.ranking is None else vote.ranking.tiers,
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
