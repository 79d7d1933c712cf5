"""The first places over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from app.api.comparisons import Joint
from app.api.deps import PortsOf, ReadableBoard, Work
from app.api.questions import NOT_MODIFIED, Answered, Question, answer
from app.api.routing import api_router
from app.services.rankings.top import check_top, top

router = api_router(prefix="/v1/boards/{board}", tag="rankings")


class TopParameters(Question):
    """Which first places."""

    interval: Joint = "simultaneous"
    k: Annotated[int, Field(description="how many; at most the number of items", le=1_000_000)] = 1


class TopRow(BaseModel):
    """One item; `chance` is that of being among the first k. What cannot be had is null, and `status` says why."""

    item: str
    rank: int | None
    rank_interval: tuple[int, int] | None
    chance: float | None
    status: str


class Top(Answered):
    """Items that are among the first k whatever the votes leave open, and those that may be.

    With the level, `surely` holds only items that truly are and `possibly` all that truly are; null where there are no
    intervals.
    """

    k: int
    surely: list[str] | None
    possibly: list[str] | None
    items: list[TopRow]


@router.get("/top", response_model=Top, responses=NOT_MODIFIED)
def read_top(
    board: ReadableBoard, work: Work, ports: PortsOf, request: Request, sent: Annotated[TopParameters, Query()]
) -> Response:
    """Who is surely, and who possibly, among the first k items."""
    query = sent.query()
    check_top(query, sent.k, board.config)
    head = work.snapshots.head(board.id)

    def make() -> dict[str, Any]:
        return top(work, board, query, ports.opener, size=sent.k, snapshot_id=head.snapshot_id)

    return answer(request, board, ports, head, key=("top", query.key, sent.k), make=make)
