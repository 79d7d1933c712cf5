"""Connections whose requests have to come in within a time: who sends a byte now and then keeps nothing open.

Nobody sets a timer for a request. One look a second at all connections sees which of them still wait for the request
that they waited for before.
"""

from __future__ import annotations

import logging
from typing import cast

from starlette.responses import Response
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from app.api import problems
from app.api.door import NAME_HEADER
from app.api.logs import RequestLog, name_of

BODY = (b"content-length", b"transfer-encoding")
"""What says that a request has a body."""
PACE = 64 * 1024
"""Bytes of a body for which there is a second more."""

log = logging.getLogger(__name__)


class PunctualProtocol(HttpToolsProtocol):
    """A connection that is looked at once a second, of a server that speaks HTTP/1.1 alone."""

    _came = 0
    _awaited: object = None
    _since = 0.0
    _had = 0
    _left = False

    def on_headers_complete(self) -> None:
        """Begin to answer; a request that wants another protocol has its answer in this one."""
        if not self.parser.should_upgrade():
            super().on_headers_complete()
            return
        app = self.app
        if any(name in BODY for name, _ in self.headers):
            self.app = RequestLog(problems.no_upgrade())
        super().on_headers_complete()
        self.app = app
        # The parser takes what follows for the other protocol.
        self.cycle.keep_alive = False

    def _unsupported_upgrade_warning(self) -> None:
        """Nobody needs to be told that there are no other protocols."""

    def on_body(self, body: bytes) -> None:
        """Count what comes."""
        self._came += len(body)
        super().on_body(body)

    def look(self, now: float, seconds: float) -> None:
        """End the connection where it has waited for one request for so long.

        Parameters
        ----------
        now : seconds on any clock.
        seconds : that a request may take, its head and body; large bodies have more.
        """
        if self._left:
            self.transport.close()
            return
        awaited = self._waits_for()
        if awaited is not self._awaited:
            self._awaited, self._since, self._had = awaited, now, self._came
        elif awaited is not None and now - self._since > seconds + (self._came - self._had) / PACE:
            self._give_up(seconds)

    def _waits_for(self) -> object:
        """What is to come from the other side, another object each time; None while it is our turn."""
        cycle, scope = self.cycle, cast(object, self.scope)
        if scope is None:
            return self.transport
        if cycle is None or cycle.scope is not scope:
            # The head of a request; one that is ahead of its turn waits for us.
            return scope if cycle is None or cycle.response_complete else None
        if cycle.more_body:
            ours = self.flow.read_paused or (cycle.response_started and not cycle.response_complete)
            return None if ours else scope
        return cycle if cycle.response_complete else None

    def _give_up(self, seconds: float) -> None:
        cycle = self.cycle
        answered = cycle is not None and cycle.scope is self.scope and cycle.response_complete
        if self._awaited is self.scope and not answered:
            log.info("a request took longer than %g s to come in", seconds)
            self._write(problems.late(seconds), name_of(None), keep_alive=False)
            # Closed at once, a connection on which more comes is reset, and the answer with it.
            self.transport.write_eof()
            self.flow.pause_reading()
            self._left = True
        else:
            self.transport.close()

    def reply(self, response: Response, name: str, *, keep_alive: bool) -> None:
        """Answer as uvicorn does, in one piece; its headers are our own, and the name has been looked at."""
        self._write(response, name, keep_alive=keep_alive)
        if not keep_alive:
            self.transport.close()

    def _write(self, response: Response, name: str, *, keep_alive: bool) -> None:
        headers = [*self.server_state.default_headers, *response.raw_headers, (NAME_HEADER, name.encode())]
        if not keep_alive:
            headers.append((b"connection", b"close"))
        lines = [b"%b: %b\r\n" % header for header in headers]
        self.transport.write(b"".join([STATUS_LINE[response.status_code], *lines, b"\r\n", response.body]))
