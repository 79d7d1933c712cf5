"""Rankings and pairs over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.conditional import conditional, tag_of
from app.api.deps import PortsOf, ReadableBoard, Work
from app.api.questions import NOT_MODIFIED, Answered, Question, answer
from app.api.routing import api_router
from app.services.rankings.pairs import pairs as read_pairs
from app.services.rankings.query import SCALES, check
from app.services.rankings.read import ranking
from app.services.refit.snapshot import METHOD

router = api_router(prefix="/v1/boards/{board}", tag="rankings")


class RankingParameters(Question):
    """Which ranking."""

    scale: Annotated[str, Field(description=", ".join(SCALES))] = "natural"
    anchor: Annotated[str | None, Field(description="item that the others are measured from")] = None


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


class VotesToFlip(BaseModel):
    """The fewest votes without which `challenger` would be ahead of `leader`, and their share of all votes.

    On large boards F is averaged over `rows_used` rows drawn; of scores that rest on these alone `votes` is that share
    of all votes. Null in snapshots of earlier versions.
    """

    votes: int
    share: float
    rows_used: int | None
    leader: str
    challenger: str


class Ranking(Answered):
    """A board's ranking.

    `votes_to_flip` is known of the debiased scores of a whole board, by `bt`, `borda`, `rc` and every estimand that the
    board names; null elsewhere (of `threshold` and `robust` unless the board names them), and where no number of votes
    flips the lead, or where votes on menus have rows that stay without them.
    """

    scale: str
    anchor: str | None
    votes_to_flip: VotesToFlip | None
    rankings: list[RankingRow]
    retired: list[RankingRow]


class PairCounts(BaseModel):
    """Votes by outcome, with either item on the left.

    Where no outcome is a tie, a pair that a ranking leaves undecided is a vote of both.
    """

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


class PairsParameters(BaseModel):
    """How wide intervals are."""

    model_config = ConfigDict(extra="forbid")

    level: Annotated[float, Field(description="of the marginal intervals")] = 0.95


@router.get("/rankings", response_model=Ranking, responses=NOT_MODIFIED)
def read_ranking(
    board: ReadableBoard, work: Work, ports: PortsOf, request: Request, sent: Annotated[RankingParameters, Query()]
) -> Response:
    """The ranking by the newest snapshot. Before the first one: status `pending` and no rows."""
    query = sent.query()
    check(query, board.config)
    head = work.snapshots.head(board.id)

    def make() -> dict[str, Any]:
        return ranking(work, board, query, ports.opener, snapshot_id=head.snapshot_id)

    return answer(request, board, ports, head, key=query.key, make=make)


@router.get("/pairs", response_model=Pairs, responses=NOT_MODIFIED)
def read_all_pairs(
    board: ReadableBoard,
    work: Work,
    ports: PortsOf,
    request: Request,
    sent: Annotated[PairsParameters, Query()],
) -> Response:
    """How well each item does against each other one, with the raw counts."""
    head = work.snapshots.head(board.id)
    key = ("pairs", board.id, board.updated_at, head.snapshot_id, sent.level)

    def make() -> bytes:
        return orjson.dumps(read_pairs(work, board, level=sent.level, snapshot_id=head.snapshot_id))

    return conditional(request, board, tag_of(METHOD, key), lambda: ports.rendered.get(key, make))
