"""Rankings and pairs over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.conditional import conditional, tag_of
from app.api.deps import Ports, PortsOf, ReadableBoard, Work
from app.api.routing import api_router
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.fields import Moment
from app.services.rankings.pairs import pairs as read_pairs
from app.services.rankings.query import ESTIMATORS, INTERVALS, PAIRS, SCALES, RankingQuery, check
from app.services.rankings.read import ranking
from app.services.refit.snapshot import METHOD

router = api_router(prefix="/v1/boards/{board}", tag="rankings")


class RankingParameters(BaseModel):
    """Which ranking."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    estimand: Annotated[str, Field(description="built-in or named by the board")] = "bt"
    estimator: Annotated[str, Field(description=", ".join(ESTIMATORS))] = "debiased"
    pairs: Annotated[str, Field(description=", ".join(PAIRS))] = "auto"
    segment: Annotated[str | None, Field(description="`name:level`")] = None
    interval: Annotated[str, Field(description=", ".join(INTERVALS))] = "simultaneous"
    level: Annotated[float, Field(description="between 0 and 1")] = 0.95
    scale: Annotated[str, Field(description=", ".join(SCALES))] = "natural"
    anchor: Annotated[str | None, Field(description="item that the others are measured from")] = None
    since: Annotated[Moment | None, Field(alias="from", description="rows offered from then on")] = None
    until: Annotated[Moment | None, Field(alias="to", description="rows offered before then")] = None

    def query(self) -> RankingQuery:
        """As the service reads it."""
        return RankingQuery(**{name: getattr(self, name) for name in RankingParameters.model_fields})


class RankingRow(BaseModel):
    """One item; what cannot be had is null, and `status` says why."""

    item: str
    rank: int | None
    rank_interval: tuple[int, int] | None
    score: float | None
    standard_error: float | None
    interval: tuple[float, float] | None
    probability_best: float | None
    votes: int | None
    effective_votes: float | None
    unsupported: float | None
    status: str


class Ranking(BaseModel):
    """A board's ranking. `rule` credits each outcome to the left and to the right item."""

    board: str
    estimand: str
    estimator: str
    pairs: str
    segment: str | None
    interval: str
    level: float
    scale: str
    anchor: str | None
    since: Annotated[datetime | None, Field(alias="from")]
    until: Annotated[datetime | None, Field(alias="to")]
    rule: dict[str, tuple[float, float]]
    status: str
    snapshot: UUID | None
    spec: str
    computed_at: datetime | None
    votes_through: datetime | None
    votes: int
    votes_pending: int
    votes_excluded: dict[str, int]
    rows: int
    contexts: int
    propensity: str | None
    note: str | None
    rankings: list[RankingRow]
    retired: list[RankingRow]


class PairCounts(BaseModel):
    """Votes by outcome, with either item on the left."""

    first_left: dict[str, int]
    second_left: dict[str, int]


class Pair(BaseModel):
    """`score` is the debiased mean share won by `first`; null where nobody voted on the pair."""

    first: str
    second: str
    score: float | None
    standard_error: float | None
    interval: tuple[float, float] | None
    votes: int
    counts: PairCounts


class Pairs(BaseModel):
    """Every unordered pair of a board's active items."""

    board: str
    interval: str
    level: float
    rule: dict[str, tuple[float, float]]
    status: str
    snapshot: UUID | None
    spec: str | None
    computed_at: datetime | None
    rows: int
    rows_used: int
    items: list[str]
    pairs: list[Pair]


NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "the answer of this ETag still holds"}}


@router.get("/rankings", response_model=Ranking, responses=NOT_MODIFIED)
def read_ranking(
    board: ReadableBoard, work: Work, ports: PortsOf, request: Request, sent: Annotated[RankingParameters, Query()]
) -> Response:
    """The ranking by the newest snapshot. Before the first one: status `pending` and no rows."""
    query = sent.query()
    check(query, board.config)
    head = work.snapshots.head(board.id)
    tag = tag_of(METHOD, board.id, head, query.key)
    return conditional(
        request,
        board,
        tag,
        lambda: _with_pending(_ranking(board, work, ports, query, head.snapshot_id), head.pending),
    )


@router.get("/pairs", response_model=Pairs, responses=NOT_MODIFIED)
def read_all_pairs(
    board: ReadableBoard,
    work: Work,
    ports: PortsOf,
    request: Request,
    level: Annotated[float, Query(description="of the marginal intervals")] = 0.95,
) -> Response:
    """How well each item does against each other one, with the raw counts."""
    head = work.snapshots.head(board.id)
    key = ("pairs", board.id, head.snapshot_id, level)

    def make() -> bytes:
        return orjson.dumps(read_pairs(work, board, level=level, snapshot_id=head.snapshot_id))

    return conditional(request, board, tag_of(METHOD, key), lambda: ports.rendered.get(key, make))


def _ranking(board: Board, work: UnitOfWork, ports: Ports, query: RankingQuery, snapshot_id: UUID | None) -> bytes:
    def make() -> bytes:
        return orjson.dumps(ranking(work, board, query, ports.opener, snapshot_id=snapshot_id))

    if snapshot_id is None:
        return make()
    return ports.rendered.get((board.id, snapshot_id, query.key), make)


def _with_pending(body: bytes, pending: int) -> bytes:
    """The one number that changes between snapshots, put in front of those that do not."""
    return b'{"votes_pending":%d,' % pending + body[1:]
