"""What routes are given: the transaction, the caller, the board that the caller may use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Path, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from redis import Redis
from sqlalchemy.orm import Session, sessionmaker
from starlette.concurrency import run_in_threadpool

from app.api.slot import slot_of
from app.api.streams import Streams
from app.api.vote_door import VoteDoor
from app.api.watch import Watch
from app.cache.limits import RateLimiter
from app.cache.news import News
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.errors import limited
from app.domain.keys import Caller, Scope
from app.queue import Queue
from app.services import access
from app.services.acquire.hatch import Guest, Hatch
from app.services.announce import Announcer
from app.services.loaded.shelf import Shelf
from app.services.rankings.opened import Opener
from app.services.rankings.rendered import Rendered


@dataclass(frozen=True, slots=True)
class Ports:
    """What the process opened at its start."""

    sessions: sessionmaker[Session]
    hatch: Hatch
    news: News
    streams: Streams
    watch: Watch
    announcer: Announcer
    votes: VoteDoor
    redis: Redis
    limiter: RateLimiter
    queue: Queue
    opener: Opener
    rendered: Rendered
    shelf: Shelf


async def ports_of(request: Request) -> Ports:
    """The open ports of the application."""
    ports: Ports = request.app.state.ports
    return ports


def unit_of_work(ports: Annotated[Ports, Depends(ports_of)]) -> Iterator[UnitOfWork]:
    """The request's transaction; it ends before the response is sent, so a failed commit is never a 2xx."""
    with UnitOfWork(ports.sessions, announce=ports.announcer.votes) as work:
        yield work


PortsOf = Annotated[Ports, Depends(ports_of)]
Work = Annotated[UnitOfWork, Depends(unit_of_work, scope="function")]

scheme = HTTPBearer(auto_error=False, description="A key from `POST /v1/keys` or `orthorank key create`")
Documented = Annotated[HTTPAuthorizationCredentials | None, Depends(scheme)]
"""Names the scheme in the OpenAPI document; the header itself is read by the service."""


def identify(request: Request, work: Work, ports: PortsOf, _: Documented) -> Caller | None:
    """Who asks, counted against the rate limit of the key, or of the address where there is no key."""
    caller = access.identify(work, request.headers.get("authorization"))
    slot = slot_of(request.scope)
    if slot is not None:
        slot.caller = caller
    work.release()
    count(request, ports, caller)
    return caller


def count(request: Request, ports: Ports, caller: Caller | None) -> None:
    """Count the request against the limit of its key, or of its address; refused where there were too many."""
    address = request.client.host if request.client else "unknown"
    wait = ports.limiter.wait(access.counted_as(caller, address))
    if wait:
        raise limited("rate-limit", "too many requests", retry_after=wait)


MaybeCaller = Annotated[Caller | None, Depends(identify)]


def _known(caller: MaybeCaller) -> Caller:
    return access.known(caller)


KnownCaller = Annotated[Caller, Depends(_known)]


class _Admitted:
    """Opens the board of the path for a scope."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __call__(self, board: Annotated[str, Path(description="slug")], work: Work, caller: MaybeCaller) -> Board:
        found = access.admit(work, board, caller, self._scope)
        work.release()
        return found


ReadableBoard = Annotated[Board, Depends(_Admitted("read"))]
VotableBoard = Annotated[Board, Depends(_Admitted("votes"))]
OwnBoard = Annotated[Board, Depends(_Admitted("admin"))]


async def _acquirable(
    request: Request, board: Annotated[str, Path(description="slug")], ports: PortsOf, _: Documented
) -> Board:
    """A board for the scope `acquire`."""
    address = request.client.host if request.client else "unknown"
    guest = Guest(board, request.headers.get("authorization"), address)
    return (await run_in_threadpool(ports.hatch.admit, guest)).board


AcquirableBoard = Annotated[Board, Depends(_acquirable)]
