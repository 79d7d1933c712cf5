"""Comparisons of two items over HTTP."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from app.api.deps import PortsOf, ReadableBoard, Work
from app.api.questions import NOT_MODIFIED, Answered, Question, answer
from app.api.routing import api_router
from app.services.rankings.comparisons import JOINT_INTERVALS, Pick, check_comparisons, comparisons

router = api_router(prefix="/v1/boards/{board}", tag="rankings")
Joint = Annotated[str, Field(description=", ".join(JOINT_INTERVALS))]


class ComparisonParameters(Question):
    """Which comparisons."""

    interval: Joint = "simultaneous"
    first: Annotated[str | None, Field(description="with `second`: this pair alone")] = None
    second: Annotated[str | None, Field(description="with `first`: this pair alone")] = None


class Comparison(BaseModel):
    """`difference` is the score of `first` minus that of `second`; `verdict` is `better`, `worse` or `unresolved`.

    What cannot be had is null, and `status` says why: that of the item without a score, or `no_interval`.
    """

    first: str
    second: str
    difference: float | None
    standard_error: float | None
    interval: tuple[float, float] | None
    verdict: str | None
    status: str


class Equality(BaseModel):
    """Chi-square test that all ranked items have one score; null where clusters are too few to judge by."""

    statistic: float | None
    degrees: int
    p_value: float | None


class Comparisons(Answered):
    """Differences whose intervals hold all together, also where one pair alone is asked for."""

    equality: Equality | None
    comparisons: list[Comparison]


@router.get("/comparisons", response_model=Comparisons, responses=NOT_MODIFIED)
def read_comparisons(
    board: ReadableBoard, work: Work, ports: PortsOf, request: Request, sent: Annotated[ComparisonParameters, Query()]
) -> Response:
    """Whether one item is better than another, for every pair of items or for one."""
    query, pick = sent.query(), Pick(sent.first, sent.second)
    check_comparisons(query, pick, board.config)
    head = work.snapshots.head(board.id)

    def make() -> dict[str, Any]:
        return comparisons(work, board, query, ports.opener, pick=pick, snapshot_id=head.snapshot_id)

    return answer(request, board, ports, head, key=("comparisons", query.key, pick), make=make)
