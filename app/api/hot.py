"""Reads in front of the application: an answer that was given before, and still holds, is sent from memory.

Everything else goes on to the application, whose routes decide, refuse and document; what they leave in the slot is
kept. So there is one place that makes answers, and this one only repeats them.
"""

from __future__ import annotations

import time
from asyncio import Future, get_running_loop, wait
from dataclasses import dataclass
from typing import NamedTuple

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.kept import Kept
from app.api.known import KnownKeys
from app.api.logs import HEADER, log_request, name_request
from app.api.routing import BOARDS
from app.api.slot import NAME, Slot
from app.api.warm import Address, Warm
from app.cache.tally import Tally

NAME_HEADER = HEADER.encode()
KEPT_PATHS = ("/rankings", "/rankings/history", "/pairs", "/comparisons", "/top", "/diagnostics")
PATIENCE = 1.0
"""Seconds for which a request waits for another that asks the same."""
LONGEST = 1024
"""Path and query string of an answer that is kept."""


class _Sent(NamedTuple):
    """The headers that an answer from memory depends on; `body`: whether one follows."""

    authorization: bytes | None
    tags: bytes
    accepted: bytes
    name: str | None
    body: bool


@dataclass(frozen=True, slots=True)
class Memory:
    """What the process remembers of answers and callers."""

    warm: Warm
    known: KnownKeys
    tally: Tally


class HotReads:
    """Answers from memory, and remembers answers.

    Parameters
    ----------
    app : makes the answers.
    memory : shared with what watches the boards.
    """

    def __init__(self, app: ASGIApp, memory: Memory) -> None:
        self._app = app
        self._memory = memory
        self._under_way: dict[Address, Future[None]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        address = (scope["path"], scope["query_string"]) if _reads(scope) else None
        if address is None:
            await self._app(scope, receive, send)
            return
        sent = _sent(scope)
        kept = self._memory.warm.find(address)
        if kept is None and not sent.body and address in self._under_way:
            # Somebody asks for the same already: what all ask for after a change is made once, not by all of them.
            # Whom that does not help asks beside.
            await wait([self._under_way[address]], timeout=PATIENCE)
            kept = self._memory.warm.find(address)
        if kept is not None and self._may_have(kept, sent, scope):
            await _answer(kept, sent, scope, send)
        elif address[0].endswith(KEPT_PATHS):
            await self._ask(_Turn(self._memory, address, sent), scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _may_have(self, kept: Kept, sent: _Sent, scope: Scope) -> bool:
        """Whether the reader gets this without further questions; whoever does not is heard by the application."""
        if sent.authorization is None:
            return kept.public and self._memory.tally.take(f"address:{scope['client'][0]}" if scope["client"] else "")
        caller = self._memory.known.find(sent.authorization)
        if caller is None:
            return False
        if not kept.public and not caller.may("read", kept.board_id):
            return False
        return self._memory.tally.take(f"key:{caller.key_id}")

    async def _ask(self, turn: _Turn, scope: Scope, receive: Receive, send: Send) -> None:
        # Whoever sends a body may take his time over it, and nobody waits for that.
        leads = not turn.sent.body and turn.address not in self._under_way
        done: Future[None] = get_running_loop().create_future()
        if leads:
            self._under_way[turn.address] = done

        def end() -> None:
            if done.done():
                return
            done.set_result(None)
            try:
                turn.keep()
            finally:
                if leads:
                    del self._under_way[turn.address]

        async def send_kept(message: Message) -> None:
            # The answer is in memory: how fast its reader takes it is nobody else's matter.
            end()
            await send(message)

        try:
            await self._app({**scope, NAME: turn.slot}, receive, send_kept)
        finally:
            end()


class _Turn:
    """One request that is answered in full, and what is to be kept of it."""

    def __init__(self, memory: Memory, address: Address, sent: _Sent) -> None:
        self.address = address
        self.sent = sent
        self.slot = Slot()
        self._memory = memory
        self._began = memory.warm.tick
        self._keys_began = memory.known.tick

    def keep(self) -> None:
        """Keep what the routes left, unless it changed since they began."""
        if self.slot.caller is not None and self.sent.authorization is not None:
            self._memory.known.put(self.sent.authorization, self.slot.caller, self._keys_began)
        if self.slot.kept is not None:
            self._memory.warm.put(self.address, self.slot.kept, self._began)


def _reads(scope: Scope) -> bool:
    """Whether an answer may be in memory: long addresses are not, since they fill it."""
    if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith(BOARDS):
        return False
    return len(scope["path"]) + len(scope["query_string"]) <= LONGEST


def _sent(scope: Scope) -> _Sent:
    authorization, tags, accepted, asked_name, body = None, b"", b"", None, False
    for name, value in scope["headers"]:
        if name == b"authorization":
            # The routes, too, take the first of several.
            authorization = value if authorization is None else authorization
        elif name == b"if-none-match":
            tags = tags + b"," + value if tags else value
        elif name == b"accept-encoding":
            accepted = accepted + b"," + value if accepted else value
        elif name == NAME_HEADER:
            asked_name = value.decode("latin-1")
        elif name == b"transfer-encoding" or (name == b"content-length" and value.strip() != b"0"):
            body = True
    return _Sent(authorization, tags, accepted, asked_name, body)


async def _answer(kept: Kept, sent: _Sent, scope: Scope, send: Send) -> None:
    started, variant = time.perf_counter(), kept.variant(sent.accepted)
    name = (NAME_HEADER, name_request(sent.name).encode())
    known = variant.known(sent.tags)
    status, headers, body = (304, variant.unchanged, b"") if known else (200, variant.headers, variant.body)
    await send({"type": "http.response.start", "status": status, "headers": (*headers, name)})
    await send({"type": "http.response.body", "body": body})
    log_request(scope, status, started)
