"""Exports of votes over HTTP, streamed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from fastapi import Query
from fastapi.responses import StreamingResponse

from app.api.deps import Ports, PortsOf, ReadableBoard, Work
from app.api.routing import api_router
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.services.rankings.influence import check_influence, influence
from app.services.rankings.query import PAIRS, RankingQuery

router = api_router(prefix="/v1/boards/{board}/votes/export", tag="votes")
LINES = "application/x-ndjson"


@router.get("", response_class=StreamingResponse)
def export(
    board: ReadableBoard,
    work: Work,
    ports: PortsOf,
    estimand: Annotated[str, Query(alias="influence", description="estimand whose influence rows are written")],
    segment: Annotated[str | None, Query(description="`name:level`")] = None,
    pairs: Annotated[str, Query(description=", ".join(PAIRS))] = "auto",
) -> StreamingResponse:
    """One line per row of the estimator: `{"row", "context", "cluster", "votes", "psi"}`.

    score = mean of psi; standard_error² = Σ_g (Σ_{i in g} (psi_i - score))² / n² over clusters g. Where rows are
    clustered by voter on a board of contexts, a row is one line for its value and one for each vote; with three labels
    in `cluster`, the sums over the first two add and that over the third is taken off.
    """
    query = RankingQuery(estimand=estimand, segment=segment, pairs=pairs)
    check_influence(work, board, query)
    return StreamingResponse(_influence(ports, board, query), media_type=LINES)


def _influence(ports: Ports, board: Board, query: RankingQuery) -> Iterator[bytes]:
    # The request's own transaction ends before its answer is sent.
    with UnitOfWork(ports.sessions) as work:
        yield from influence(work, board, query)
