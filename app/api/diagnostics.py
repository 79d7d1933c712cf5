"""Diagnostics over HTTP."""

from __future__ import annotations

from typing import Annotated

import orjson
from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.conditional import conditional, tag_of
from app.api.deps import MaybeCaller, PortsOf, ReadableBoard, Work
from app.api.diagnosis import Diagnostics
from app.api.questions import NOT_MODIFIED
from app.api.routing import api_router
from app.services.access import known
from app.services.diagnostics import diagnostics
from app.services.refit.snapshot import METHOD

router = api_router(prefix="/v1/boards/{board}/diagnostics", tag="rankings")


class DiagnosticsParameters(BaseModel):
    """How voters are named."""

    model_config = ConfigDict(extra="forbid")

    raw_voters: Annotated[bool, Field(description="voters as they were sent; needs scope `admin`")] = False


@router.get("", response_model=Diagnostics, responses=NOT_MODIFIED)
def read_diagnostics(
    board: ReadableBoard,
    work: Work,
    ports: PortsOf,
    request: Request,
    caller: MaybeCaller,
    sent: Annotated[DiagnosticsParameters, Query()],
) -> Response:
    """What the newest snapshot's rankings rest on. Voters are named as in exports."""
    if sent.raw_voters:
        known(caller).require("admin", board.id)
    head = work.snapshots.head(board.id)
    key = ("diagnostics", board.id, board.updated_at, head.snapshot_id, sent.raw_voters)

    def make() -> bytes:
        return orjson.dumps(diagnostics(work, board, snapshot_id=head.snapshot_id, raw_voters=sent.raw_voters))

    tag = tag_of(METHOD, key)
    return conditional(request, board, tag, lambda: ports.rendered.get(key, make), for_readers=not sent.raw_voters)
