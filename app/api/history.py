"""Rankings over time, over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import orjson
from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from app.api.conditional import conditional, tag_of
from app.api.deps import PortsOf, ReadableBoard, Work
from app.api.questions import NOT_MODIFIED, Asked, Question
from app.api.routing import api_router
from app.services.rankings.history import MOST_POINTS, history
from app.services.refit.snapshot import METHOD

router = api_router(prefix="/v1/boards/{board}/rankings", tag="rankings")


class HistoryParameters(Question):
    """Which scores, and how many points; `from` and `to` are moments of snapshots here."""

    points: Annotated[int, Field(description=f"snapshots at most, 2 to {MOST_POINTS}")] = 50


class HistoryPoint(BaseModel):
    """One snapshot."""

    snapshot: UUID
    computed_at: datetime
    votes_through: datetime | None
    spec: str
    status: str
    votes: int
    rows: int


class ItemHistory(BaseModel):
    """One item; lists have an entry for each point, null where the item had none.

    `changed_beyond_noise` compares the last point with the first, `steps_beyond_noise` each with the one before:
    whether the score moved by more than the votes' noise explains. Null where scores cannot be compared: items came or
    went, or there are no errors.
    """

    item: str
    score: list[float | None]
    standard_error: list[float | None]
    interval: list[tuple[float, float] | None]
    rank: list[int | None]
    changed_beyond_noise: bool | None
    steps_beyond_noise: list[bool | None]


class History(Asked):
    """What a board's snapshots said, oldest first, thinned to `points`; there were `snapshots` in the window."""

    snapshots: int
    note: str
    points: list[HistoryPoint]
    items: list[ItemHistory]


@router.get("/history", response_model=History, responses=NOT_MODIFIED)
def read_history(
    board: ReadableBoard, work: Work, ports: PortsOf, request: Request, sent: Annotated[HistoryParameters, Query()]
) -> Response:
    """Scores, intervals and ranks over time, and what changed beyond noise."""
    query, head = sent.query(), work.snapshots.head(board.id)
    key = ("history", board.id, board.updated_at, head.snapshot_id, query.key, sent.points)

    def make() -> bytes:
        return orjson.dumps(history(work, board, query, points=sent.points))

    return conditional(request, board, tag_of(METHOD, key), lambda: ports.rendered.get(key, make))
