"""Exports of votes over HTTP, streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import StreamingResponse

from app.api.deps import MaybeCaller, Ports, PortsOf, ReadableBoard, Work
from app.api.routing import api_router
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.formats.writers import MEDIA_TYPES, Container
from app.services.access import known
from app.services.exports import export_votes
from app.services.rankings.influence import check_influence, influence
from app.services.rankings.query import PAIRS, RankingQuery

router = api_router(prefix="/v1/boards/{board}/votes/export", tag="votes")
LINES = MEDIA_TYPES["jsonl"]


FORMATS: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file, streamed", "content": {media_type: {} for media_type in MEDIA_TYPES.values()}}
}


@router.get("", response_class=StreamingResponse, responses=FORMATS)
def export(
    board: ReadableBoard,
    work: Work,
    ports: PortsOf,
    caller: MaybeCaller,
    container: Annotated[Container, Query(alias="format", description="of the votes")] = "jsonl",
    raw_voters: Annotated[bool, Query(description="voters as they were sent; needs scope `admin`")] = False,
    estimand: Annotated[
        str | None, Query(alias="influence", description="write the influence rows of this estimand instead")
    ] = None,
    segment: Annotated[str | None, Query(description="of the influence rows: `name:level`")] = None,
    pairs: Annotated[str, Query(description=f"of the influence rows: {', '.join(PAIRS)}")] = "auto",
) -> StreamingResponse:
    """Every vote with `propensity` as sent, `propensity_used` by the newest snapshot, and why it is `excluded` if so.

    Voters are renamed, each always to the same name on this board, unless `raw_voters` is asked for.

    With `influence`, instead, one JSON line per row of the estimator: `{"row", "context", "cluster", "votes", "psi"}`;
    score = mean of psi; standard_error² = Σ_g (Σ_{i in g} (psi_i - score))² / n² over clusters g. Where rows are
    clustered by voter on a board of contexts, a row is one line for its value and one for each vote; with three labels
    in `cluster`, the sums over the first two add and that over the third is taken off.
    """
    if estimand is not None:
        query = RankingQuery(estimand=estimand, segment=segment, pairs=pairs)
        check_influence(work, board, query)
        return StreamingResponse(_influence(ports, board, query), media_type=LINES)
    if raw_voters:
        known(caller).require("admin", board.id)
    name = f'attachment; filename="{board.slug}.{container}"'
    lines = _votes(ports, board, container, raw_voters=raw_voters)
    return StreamingResponse(lines, media_type=MEDIA_TYPES[container], headers={"Content-Disposition": name})


def _votes(ports: Ports, board: Board, container: Container, *, raw_voters: bool) -> Iterator[bytes]:
    # The request's own transaction ends before its answer is sent.
    with UnitOfWork(ports.sessions) as work:
        yield from export_votes(work, board, container, raw_voters=raw_voters)


def _influence(ports: Ports, board: Board, query: RankingQuery) -> Iterator[bytes]:
    with UnitOfWork(ports.sessions) as work:
        yield from influence(work, board, query)
