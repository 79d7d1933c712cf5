"""The way in of requests for one context, past the framework: somebody waits for the next pair each time."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context

import orjson
from pydantic import TypeAdapter
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.responses import Response
from starlette.types import Scope

from app.api import problems
from app.api.door import Call, Door, ForTheFramework
from app.api.routing import read_json
from app.cache.tally import Tally
from app.domain.acquire import AcquireDraft
from app.domain.errors import DomainError
from app.domain.parsing import parse
from app.services.acquire.answer import Answer
from app.services.acquire.at_once import Visit, may_be
from app.services.acquire.hatch import Guest, Hatch

DRAFT: TypeAdapter[AcquireDraft] = TypeAdapter(AcquireDraft)
KEY = b"idempotency-key"
THREADS = 40
"""Requests that are answered at a time, as many as the framework lets wait for the database."""


class AcquireDoor(Door):
    """Answers `POST /v1/boards/{board}/acquire` for one context; what else is asked there is for the framework.

    Parameters
    ----------
    hatch : draws.
    tally : counts the requests of callers that are known.
    """

    def __init__(self, hatch: Hatch, tally: Tally) -> None:
        super().__init__("/acquire")
        self._hatch = hatch
        self._tally = tally
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="acquire")

    def takes(self, scope: Scope) -> bool:
        """Requests that come again under a key of theirs are not for this door."""
        return super().takes(scope) and all(name != KEY for name, _ in scope["headers"])

    async def respond(self, call: Call) -> Response:
        """Draw for the context in the body."""
        guest, draft = Guest(call.slug, call.authorization, call.address), _draft(call)
        visit = self._hatch.remembered(guest)
        if visit is not None and not self._tally.take(f"key:{visit.footing.key_id}"):
            visit = None
        run, loop = copy_context().run, asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, run, self._answer, guest, draft, visit)

    def close(self) -> None:
        """Wait for what is under way."""
        self._threads.shutdown()

    def _answer(self, guest: Guest, draft: AcquireDraft, visit: Visit | None) -> Response:
        try:
            return respond(self._hatch.serve(guest, draft, visit))
        except DomainError as error:
            return problems.answer(error)
        except (OperationalError, InterfaceError, PoolTimeout) as error:
            return problems.lost(error)


def respond(answer: Answer) -> Response:
    """An answer over HTTP."""
    headers = {} if answer.retry_after is None else {"Retry-After": str(answer.retry_after)}
    return Response(orjson.dumps(answer.document), media_type="application/json", headers=headers)


def _draft(call: Call) -> AcquireDraft:
    """What the body asks for; the framework says what is wrong with it."""
    if not call.is_json:
        raise ForTheFramework
    try:
        draft = parse(DRAFT, read_json(call.body))
    except DomainError:
        raise ForTheFramework from None
    if not may_be(draft):
        raise ForTheFramework
    return draft
