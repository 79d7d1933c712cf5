"""Server-sent events of a board."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Header, Path, Request, Response
from starlette.types import Receive, Scope, Send

from app.api.deps import Documented, PortsOf, count
from app.api.problems import answer
from app.api.routing import api_router
from app.api.streams import Stream, Streams
from app.db.unit_of_work import UnitOfWork
from app.domain.errors import DomainError, Missing
from app.services import access

router = api_router(prefix="/v1/boards/{board}", tag="rankings")

DESCRIBED: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "Events until either side ends the stream",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
}
HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store", "x-accel-buffering": "no"}


class EventStream(Response):
    """A stream as a response; its end, from whichever side, frees it.

    Parameters
    ----------
    join : opens the stream; called in the event loop.
    """

    def __init__(self, streams: Streams, join: Callable[[], Stream]) -> None:
        super().__init__(headers=HEADERS)
        del self.headers["content-length"]
        self._streams = streams
        self._join = join

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            stream = self._join()
        except DomainError as refused:
            await answer(refused)(scope, receive, send)
            return
        listening = asyncio.create_task(_until_gone(receive, stream))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for chunk in stream.chunks():
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._streams.leave(stream)
            listening.cancel()


async def _until_gone(receive: Receive, stream: Stream) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    stream.end()


@router.get("/stream", response_class=Response, responses=DESCRIBED)
def listen(
    request: Request,
    board: Annotated[str, Path(description="slug")],
    ports: PortsOf,
    _: Documented,
    last_event_id: Annotated[str | None, Header(description="of the event received last")] = None,
) -> Response:
    """Server-sent events of a board.

    `rankings`: scores moved, or what is said of them; `refit`: a refit ended (`state` `succeeded` or `failed`). The
    stream begins with the current `rankings` event, unless `Last-Event-ID` names it: who missed events is told where
    things stand now. Comments keep the connection open.
    """
    # One step from the key to the version: hundreds may come at once, and who holds a connection waits for nobody.
    with UnitOfWork(ports.sessions) as work:
        caller = access.identify(work, request.headers.get("authorization"))
        count(request, ports, caller)
        opened = access.admit(work, board, caller, "read")
        version = work.versions.of([opened.id]).get(opened.id)
    if version is None:
        raise Missing("unknown-board", f"there is no board {board!r}", got=board)
    # Where a key does not open the board, its reader is one of the public, and goes when the public does.
    key_id = caller.key_id if caller is not None and caller.may("read", version.board_id) else None

    def join() -> Stream:
        stream = ports.streams.join(version, key_id, last_event_id)
        # What changed since the version was read.
        ports.watch.look_at(version.board_id)
        return stream

    return EventStream(ports.streams, join)
