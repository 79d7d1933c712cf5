"""Reads in front of the application: an answer that was given before, and still holds, is sent from memory.

Everything else goes on to the application, whose routes decide, refuse and document; what they leave in the slot is
kept. So there is one place that makes answers, and this one only repeats them.
"""

from __future__ import annotations

import time
from asyncio import Future, get_running_loop
from dataclasses import dataclass
from typing import NamedTuple

from starlette.types import ASGIApp, Receive, Scope, Send

from app.api.kept import Kept
from app.api.known import KnownKeys
from app.api.logs import HEADER, log_request, name_request
from app.api.slot import NAME, Slot
from app.api.tally import Tally
from app.api.warm import Address, Warm
from app.domain.errors import DomainError

PREFIX = "/v1/boards/"
NAME_HEADER = HEADER.encode()
KEPT_PATHS = ("/rankings", "/rankings/history", "/pairs", "/comparisons", "/top", "/diagnostics")


class _Sent(NamedTuple):
    """The headers that an answer from memory depends on."""

    authorization: bytes | None
    tags: bytes
    accepted: bytes
    name: str | None


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
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        address, sent = (scope["path"], scope["query_string"]), _sent(scope)
        kept = self._memory.warm.find(address)
        while kept is None and address in self._under_way:
            # Somebody asks for the same already: what all ask for after a change is made once, not by all of them.
            await self._under_way[address]
            kept = self._memory.warm.find(address)
        if kept is not None and self._may_have(kept, sent, scope):
            await _answer(kept, sent, scope, send)
        elif address[0].endswith(KEPT_PATHS):
            await self._ask(address, sent, scope, receive, send)
        else:
            await self._app(scope, receive, send)

    def _may_have(self, kept: Kept, sent: _Sent, scope: Scope) -> bool:
        """Whether the reader gets this without further questions; whoever does not is heard by the application."""
        if sent.authorization is None:
            return kept.public and self._memory.tally.take(f"address:{scope['client'][0]}" if scope["client"] else "")
        caller = self._memory.known.find(sent.authorization)
        if caller is None:
            return False
        if not kept.public:
            try:
                caller.require("read", kept.board_id)
            except DomainError:
                return False
        return self._memory.tally.take(f"key:{caller.key_id}")

    async def _ask(self, address: Address, sent: _Sent, scope: Scope, receive: Receive, send: Send) -> None:
        slot, memory = Slot(), self._memory
        began, keys_began = memory.warm.tick, memory.known.tick
        # Whoever comes here with a key that is not known yet, while somebody leads, asks beside.
        leads = address not in self._under_way
        if leads:
            self._under_way[address] = get_running_loop().create_future()
        try:
            await self._app({**scope, NAME: slot}, receive, send)
        finally:
            if slot.caller is not None and sent.authorization is not None:
                memory.known.put(sent.authorization, slot.caller, keys_began)
            if slot.kept is not None:
                memory.warm.put(address, slot.kept, began)
            if leads:
                self._under_way.pop(address).set_result(None)


def _sent(scope: Scope) -> _Sent:
    authorization, tags, accepted, asked_name = None, b"", b"", None
    for name, value in scope["headers"]:
        if name == b"authorization":
            authorization = value
        elif name == b"if-none-match":
            tags = tags + b"," + value if tags else value
        elif name == b"accept-encoding":
            accepted = accepted + b"," + value if accepted else value
        elif name == NAME_HEADER:
            asked_name = value.decode("latin-1")
    return _Sent(authorization, tags, accepted, asked_name)


async def _answer(kept: Kept, sent: _Sent, scope: Scope, send: Send) -> None:
    started, variant, known = time.perf_counter(), kept.variant(sent.accepted), kept.known(sent.tags)
    name = (NAME_HEADER, name_request(sent.name).encode())
    status, headers, body = (304, variant.unchanged, b"") if known else (200, variant.headers, variant.body)
    await send({"type": "http.response.start", "status": status, "headers": (*headers, name)})
    await send({"type": "http.response.body", "body": body})
    log_request(scope, status, started)
