"""Equilibria over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import orjson
from fastapi import Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.deps import PortsOf, ReadableBoard, Work
from app.api.questions import NOT_MODIFIED, SEGMENT, answer
from app.api.routing import api_router
from app.domain.equilibrium import EquilibriumDraft
from app.services.equilibrium import read
from app.services.equilibrium.solve import solve

router = api_router(prefix="/v1/boards/{board}/equilibrium", tag="equilibrium")
OPEN = ConfigDict(populate_by_name=True)


class Settings(BaseModel):
    """What equilibria are regularised by, and what deploying the items costs."""

    model_config = OPEN

    strength: Annotated[float, Field(alias="lambda")]
    regulariser: str
    aggregator: str
    costs: dict[str, float]


class Played(BaseModel):
    """The mixture that no rival beats; null where `status` says why.

    `winners` have a share above .001. `exploitability` is what the best single rival gains against the mixture, costs
    left out; `gap` certifies the solution.
    """

    status: str
    votes: int
    distribution: dict[str, float] | None
    winners: list[str]
    exploitability: float | None
    gap: float | None


class Source(BaseModel):
    """The snapshot behind an answer."""

    board: str
    snapshot: UUID | None
    spec: str
    computed_at: datetime | None
    votes_through: datetime | None
    votes_pending: int
    propensity: str | None
    settings: Settings


class MeanPayoff(BaseModel):
    """Chance that `first` is better less that `second` is, over all contexts; intervals hold for all pairs at once."""

    first: str
    second: str
    payoff: float
    standard_error: float | None
    interval: tuple[float, float] | None
    votes: int


class BoardEquilibrium(Source, Played):
    """The equilibrium of the mean payoffs of a board or of a segment.

    `robust` is best against the worst payoffs within all intervals.
    """

    segment: str | None
    rows: int
    rows_used: int
    contexts: int
    interval: str
    level: float
    robust: dict[str, float] | None
    payoffs: list[MeanPayoff]


class SegmentRow(Played):
    """The equilibrium of one segment; `segment` is null for the whole board."""

    segment: str | None


class LevelRow(SegmentRow):
    """The same of a level, with the total-variation distance to the whole board's."""

    distance: float | None


class Segments(Source):
    """Shares by segment and item, and the total-variation distances between segments; null where nothing is known."""

    status: str
    items: list[str]
    overall: SegmentRow
    segments: list[LevelRow]
    matrix: list[list[float | None]]
    distances: list[list[float | None]]


class SolvedSettings(Settings):
    """`contexts` and `mean_gap` are those of the policy at its refit."""

    contexts: int | None = None
    mean_gap: float | None = None


class Solved(BaseModel):
    """The mixture for one context; the policy looks at no payoffs, so it has no `gap`."""

    distribution: dict[str, float]
    winners: list[str]
    gap: float | None


class Equilibria(BaseModel):
    """The mixtures, in the order of the contexts."""

    board: str
    method: str
    snapshot: UUID
    settings: SolvedSettings
    equilibria: list[Solved]


class EquilibriumParameters(BaseModel):
    """Which equilibrium."""

    model_config = ConfigDict(extra="forbid")

    segment: Annotated[str | None, Field(description=SEGMENT)] = None


class NoParameters(BaseModel):
    """There is nothing to choose."""

    model_config = ConfigDict(extra="forbid")


@router.get("", response_model=BoardEquilibrium, responses=NOT_MODIFIED)
def read_equilibrium(
    board: ReadableBoard, work: Work, ports: PortsOf, request: Request, sent: Annotated[EquilibriumParameters, Query()]
) -> Response:
    """The equilibrium of the debiased mean payoffs, whole or of a segment, under the items' costs."""
    head, costs = work.snapshots.head(board.id), work.items.costs(board.id)

    def make() -> dict[str, Any]:
        return read.equilibrium(work, board, costs, segment=sent.segment, snapshot_id=head.snapshot_id)

    key = ("equilibrium", sent.segment, tuple(costs.items()))
    return answer(request, board, ports, head, key=key, make=make)


@router.post("", response_model=Equilibria)
def solve_equilibria(board: ReadableBoard, work: Work, ports: PortsOf, draft: EquilibriumDraft) -> Response:
    """The equilibrium of each context, from its payoffs (`solver`), or at once by the policy of the refit (`policy`).

    Costs pay in units of payoff; with a budget a mixture's expected cost stays within it as well.
    """
    return Response(orjson.dumps(solve(work, board, draft, ports.shelf)), media_type="application/json")


@router.get("/segments", response_model=Segments, responses=NOT_MODIFIED)
def read_segments(
    board: ReadableBoard, work: Work, ports: PortsOf, request: Request, _sent: Annotated[NoParameters, Query()]
) -> Response:
    """The equilibria of all levels of the board's segments."""
    head, costs = work.snapshots.head(board.id), work.items.costs(board.id)

    def make() -> dict[str, Any]:
        return read.segments(work, board, costs, snapshot_id=head.snapshot_id)

    return answer(request, board, ports, head, key=("equilibrium segments", tuple(costs.items())), make=make)
