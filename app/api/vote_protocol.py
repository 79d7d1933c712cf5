"""Single votes past the server's machinery too: a task, an event and an ASGI scope each cost more than the vote itself.

A connection hands a vote to the door as soon as its last byte is there, and writes the answer when the door is told it.
Only plain requests go this way. Whatever else may come over a connection (long or chunked bodies, requests ahead of
their turn, `Expect`, other paths) is uvicorn's, which leads votes to the same door.
"""

from __future__ import annotations

import logging
import re
import time
from asyncio import AbstractEventLoop
from typing import ClassVar

from starlette.responses import Response
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT

from app.api import problems
from app.api.door import GONE, NAME_HEADER, UNKNOWN, Headers, call_of, first_of_each, text
from app.api.logs import name_of
from app.api.punctual import PunctualProtocol
from app.api.routing import BOARDS
from app.api.vote_door import AFTER, VoteDoor, answer_to
from app.domain.errors import DomainError
from app.services.ballot_box.casts import Cast, Failed, Fate

VOTES = re.compile(rf"{BOARDS}([\w.~-]+){AFTER}".encode())
FORWARDED = b"x-forwarded-for"

log = logging.getLogger(__name__)


class VoteProtocol(PunctualProtocol):
    """A connection of a server without a root path and a limit on concurrency; `door` has its votes."""

    door: ClassVar[VoteDoor]

    def on_headers_complete(self) -> None:
        """Take a vote in, or leave the request to uvicorn."""
        exchange = self._vote()
        if exchange is None:
            super().on_headers_complete()
        else:
            self.cycle = exchange  # type: ignore[assignment]

    def _vote(self) -> Exchange | None:
        found = VOTES.fullmatch(self.url)
        if found is None or self.parser.get_method() != b"POST" or not self._is_free():
            return None
        headers = first_of_each(self.headers)
        length = headers.get(b"content-length")
        if length is None or int(length) > HIGH_WATER_LIMIT:
            return None
        return Exchange(self, found[1].decode(), headers)

    def _is_free(self) -> bool:
        """Whether nothing else goes on between the two sides, and nothing else is to come of this request."""
        waits = self.cycle is not None and not self.cycle.response_complete
        special = self.expect_100_continue or self.parser.should_upgrade() or self.parser.get_http_version() != "1.1"
        return not (waits or special or self.flow.write_paused)

    def address(self, headers: Headers) -> str:
        """Where a request comes from, as uvicorn tells its applications."""
        host = self.client[0] if self.client else ""
        if FORWARDED in headers and isinstance(self.app, ProxyHeadersMiddleware) and host in self.app.trusted_hosts:
            said = b", ".join([value for name, value in self.headers if name == FORWARDED]).decode("latin-1")
            host = self.app.trusted_hosts.get_trusted_client_address(said)[0] or host
        return host or UNKNOWN


class Exchange:
    """A vote and its answer: to the connection a cycle of uvicorn's and its event, to the box who is told the fate."""

    def __init__(self, protocol: VoteProtocol, slug: str, headers: Headers) -> None:
        self.body = b""
        self.more_body = True
        self.keep_alive = protocol.parser.should_keep_alive()
        self.disconnected = False
        self.response_started = False
        self.response_complete = False
        self.scope = protocol.scope
        self._started = time.perf_counter()
        self._protocol = protocol
        self._slug = slug
        self._path = protocol.url.decode()
        self._headers = headers
        self._address = protocol.address(headers)
        self._name = name_of(text(headers.get(NAME_HEADER)))
        self._cast: Cast | None = None

    @property
    def message_event(self) -> Exchange:
        """What uvicorn sets; no attribute, for a circle would wait for the garbage collector."""
        return self

    def set(self) -> None:
        """Look at what has changed: more of the body is there, or all of it, or the connection is gone."""
        if self.response_complete:
            return
        if not self.disconnected:
            if not self.more_body:
                self._begin()
        elif self.more_body:
            self.response_complete = True
            self._log(GONE)

    def get_loop(self) -> AbstractEventLoop:
        """The connection's."""
        return self._protocol.loop

    def done(self) -> bool:
        """Whether it was answered, or nobody is there any more."""
        return self.response_complete

    def set_result(self, fate: Fate) -> None:
        """Answer the vote; where the caller went away it was stored all the same."""
        self.response_complete = True
        # They know each other: kept, they would wait for the garbage collector.
        cast, self._cast = self._cast, None
        if cast is not None:
            cast.abandoned = True
        response = self._response(fate)
        if not self._protocol.transport.is_closing():
            self._protocol.reply(response, self._name, keep_alive=self.keep_alive)
        self._log(response.status_code)
        self._protocol.on_response_complete()

    def _begin(self) -> None:
        call = call_of(self._slug, self._headers, self.body, address=self._address)
        try:
            self._cast = self._protocol.door.begin(call, self)
        except DomainError as error:
            self._refuse(error)
        except Exception as error:
            self._log_exception()
            self._refuse(Failed(error))

    def _refuse(self, fate: Fate) -> None:
        # Never while the parser runs: uvicorn takes no answer to be complete before its request was read.
        self.get_loop().call_soon(self.set_result, fate)

    def _response(self, fate: Fate) -> Response:
        try:
            return answer_to(fate)
        except Exception:
            # Others are told their fate after this one.
            self._log_exception()
            return problems.failure()

    def _log_exception(self) -> None:
        log.exception("%s was not answered", self._path, extra={"fields": {"request_id": self._name}})

    def _log(self, status: int) -> None:
        self._protocol.door.lines.add(self._name, self._path, status, self._started)


def protocol_of(door: VoteDoor) -> type[VoteProtocol]:
    """The protocol of the connections of a server whose votes go through a door."""
    return type("VoteProtocolOfDoor", (VoteProtocol,), {"door": door})
