"""The way in of single votes, past the framework: they come by the thousand, and it would cost more than the database.

What is refused is refused in the same order and the same words as by any other route.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from app.api import problems
from app.api.logs import HEADER, RequestLines, name_request
from app.api.routing import NUL, is_json, read_body, read_json
from app.db.votes import VoteView
from app.domain.ballots import BALLOT, Ballot
from app.domain.boards import Board
from app.domain.errors import DomainError
from app.domain.parsing import BadFields, FieldError, parse
from app.services.ballot_box.box import BallotBox, away
from app.services.ballot_box.casts import Cast, Failed, Fate, Stored, named

BEFORE, AFTER = "/v1/boards/", "/votes"
WANTED = {b"authorization", b"content-type", b"content-length", HEADER.encode()}
NO_BODY = BadFields([FieldError("missing-field", "", "Field required", None)])
JSON = (b"content-type", b"application/json")

log = logging.getLogger(__name__)


class Disconnected(Exception):
    """The caller went away before it had said what it wants."""


class Sender(NamedTuple):
    """Who sends a vote: the header that says so, and the address that it comes from."""

    authorization: str | None
    address: str


class VoteDoor:
    """Answers `POST /v1/boards/{board}/votes`.

    Parameters
    ----------
    box : has the votes committed.
    patience : seconds that a vote waits for its commit.
    """

    def __init__(self, box: BallotBox, *, patience: float) -> None:
        self._box = box
        self._patience = patience
        self._lines = RequestLines()

    @staticmethod
    def takes(scope: Scope) -> bool:
        """Whether the request is a single vote, with nothing about it that only the framework can judge."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
            return False
        path: str = scope["path"]
        slug = path[len(BEFORE) : -len(AFTER)]
        return path == f"{BEFORE}{slug}{AFTER}" and slug != "" and "/" not in slug and NUL not in slug

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started, status = time.perf_counter(), 500
        headers = _wanted(scope)
        name = name_request(headers.get(HEADER))
        try:
            response = await self._response(scope["path"][len(BEFORE) : -len(AFTER)], headers, scope, receive)
            status = response.status_code
            head = [*response.raw_headers, (HEADER.encode(), name.encode())]
            await send({"type": "http.response.start", "status": status, "headers": head})
            await send({"type": "http.response.body", "body": response.body})
        except Disconnected:
            status = 499
        finally:
            self._lines.add(scope, status, started)

    async def _response(self, slug: str, headers: dict[str, str], scope: Scope, receive: Receive) -> Response:
        try:
            body = await read_body(_chunks(receive), headers.get("content-length"))
            document = read_json(body) if is_json(headers.get("content-type", "")) else body or None
        except DomainError as error:
            return problems.answer(error)
        except HTTPException as error:
            return problems.http_answer(error)
        client = scope.get("client")
        sender = Sender(headers.get("authorization"), client[0] if client else "unknown")
        return await self.store(slug, sender, document)

    async def store(self, slug: str, sender: Sender, document: Any) -> Response:
        """The answer to a vote, once it is committed or refused."""
        ballot, named_here = named(_ballot(document))
        loop = asyncio.get_running_loop()
        cast = Cast(slug, *sender, ballot, named_here, loop, loop.create_future())
        try:
            self._box.put(cast)
            async with asyncio.timeout(self._patience):
                return _answer(await cast.answer)
        except TimeoutError:
            return problems.answer(away())
        except DomainError as error:
            return problems.answer(error)
        finally:
            cast.abandoned = True


class PastTheFramework:
    """Leads single votes to their door, and everything else to the application."""

    def __init__(self, app: ASGIApp, door: VoteDoor) -> None:
        self._app = app
        self._door = door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._door if self._door.takes(scope) else self._app)(scope, receive, send)


def document_of(board: Board, vote: VoteView) -> dict[str, Any]:
    """A vote as its sender sees it."""
    return {
        "id": vote.client_id,
        "context": None if vote.context is None else {"id": vote.context},
        "offer": vote.offer,
        "left": vote.left,
        "right": vote.right,
        "outcome": board.config.categories[vote.outcome].name,
        "voter": vote.voter,
        "voter_type": vote.voter_type,
        "propensity": vote.propensity,
        "created_at": _written(vote.created_at),
        "received_at": _written(vote.received_at),
    }


def _written(moment: datetime) -> datetime:
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def _answer(fate: Fate) -> Response:
    match fate:
        case Stored(board, vote, new):
            body = orjson.dumps(document_of(board, vote), option=orjson.OPT_UTC_Z)
            return Response(body, 201 if new else 200, media_type="application/json")
        case Failed():
            return problems.failure()
        case _:
            return problems.answer(fate)


def _ballot(document: Any) -> Ballot | DomainError:
    if document is None:
        return NO_BODY
    try:
        return parse(BALLOT, document)
    except DomainError as error:
        return error


def _wanted(scope: Scope) -> dict[str, str]:
    """The first of each header that counts here."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name in WANTED:
            found.setdefault(name.decode(), value.decode("latin-1"))
    return found


async def _chunks(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        more = message.get("more_body", False)
        yield message.get("body", b"")
