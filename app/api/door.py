"""Ways in past the framework, for requests that come by the thousand or that people wait for.

What is refused there is refused in the same order and the same words as by any other route.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api import problems
from app.api.logs import HEADER, RequestLines, name_request
from app.api.routing import BOARDS, NUL, is_json, read_body

log = logging.getLogger(__name__)
NAME_HEADER = HEADER.encode()
Headers = Mapping[bytes, bytes]
"""The first of each name."""
GONE = 499
"""The status in the line of a request whose caller went away."""
UNKNOWN = "unknown"
"""The address of a caller that has none."""


class Disconnected(Exception):
    """The caller went away before it had said what it wants."""


class ForTheFramework(Exception):
    """A request that turned out to be another kind than the door is for."""


class Call(NamedTuple):
    """A request with a body, for a board.

    Parameters
    ----------
    authorization : the header, if there was one.
    address : where it comes from.
    is_json : whether its body says so of itself.
    """

    slug: str
    authorization: str | None
    address: str
    body: bytes
    is_json: bool


class Door(ABC):
    """Answers `POST /v1/boards/{board}` followed by a path of its own.

    Parameters
    ----------
    after : that path.
    """

    def __init__(self, after: str) -> None:
        self._after = after
        self.lines = RequestLines()

    def takes(self, scope: Scope) -> bool:
        """Whether the request is for this door, with nothing about it that only the framework can judge."""
        if scope["type"] != "http" or scope["method"] != "POST" or scope["query_string"]:
            return False
        slug = self._slug(scope)
        return scope["path"] == f"{BOARDS}{slug}{self._after}" and slug != "" and "/" not in slug and NUL not in slug

    @abstractmethod
    async def respond(self, call: Call) -> Response:
        """The answer to a request, or `ForTheFramework`."""

    async def pass_through(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that the door takes; the application has those that turn out to be its own."""
        started = time.perf_counter()
        headers = first_of_each(scope["headers"])
        name = name_request(text(headers.get(NAME_HEADER)))
        address = scope["client"][0] if scope.get("client") else UNKNOWN
        try:
            body = await read_body(_chunks(receive), text(headers.get(b"content-length")))
            response = await self.respond(call_of(self._slug(scope), headers, body, address=address))
        except ForTheFramework:
            await app(scope, _again(body, receive), send)
            return
        except HTTPException as error:
            response = problems.http_answer(error)
        except Disconnected:
            self.lines.add(name, scope["path"], GONE, started)
            return
        except Exception:
            log.exception("%s was not answered", scope["path"])
            response = problems.failure()
        head = [*response.raw_headers, (NAME_HEADER, name.encode())]
        await send({"type": "http.response.start", "status": response.status_code, "headers": head})
        await send({"type": "http.response.body", "body": response.body})
        self.lines.add(name, scope["path"], response.status_code, started)

    def _slug(self, scope: Scope) -> str:
        path: str = scope["path"]
        return path[len(BOARDS) : -len(self._after)]


class PastTheFramework:
    """Leads requests to the doors that take them, and everything else to the application."""

    def __init__(self, app: ASGIApp, doors: Sequence[Door]) -> None:
        self._app = app
        self._doors = doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        for door in self._doors:
            if door.takes(scope):
                await door.pass_through(self._app, scope, receive, send)
                return
        await self._app(scope, receive, send)


def first_of_each(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """The headers by name; one that comes again does not count."""
    return dict(reversed([*headers]))


def call_of(slug: str, headers: Headers, body: bytes, *, address: str) -> Call:
    """A request as a door answers it."""
    sent_as_json = is_json(headers.get(b"content-type", b"").decode("latin-1"))
    return Call(slug, text(headers.get(b"authorization")), address, body, sent_as_json)


def text(value: bytes | None) -> str | None:
    """The value of a header that may be missing."""
    return None if value is None else value.decode("latin-1")


async def _chunks(receive: Receive) -> AsyncIterator[bytes]:
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Disconnected
        more = message.get("more_body", False)
        yield message.get("body", b"")


def _again(body: bytes, receive: Receive) -> Receive:
    """Receives a body that was received before, then what follows."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive_again() -> Message:
        return messages.pop() if messages else await receive()

    return receive_again
