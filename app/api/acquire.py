"""Which pair next, over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
from fastapi import Header, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from app.api.acquire_door import respond
from app.api.deps import AcquirableBoard, PortsOf, ReadableBoard, Work
from app.api.routing import api_router
from app.db.unit_of_work import UnitOfWork
from app.domain.acquire import AcquireDraft, ReleaseDraft
from app.services.acquire import policy as policies
from app.services.acquire import run

router = api_router(prefix="/v1/boards/{board}", tag="acquire")


@dataclass(frozen=True, slots=True)
class PolicyInForce:
    """What a draw was made by; `lambda` is null where no budget binds a uniform policy."""

    id: str
    objective: str
    estimand: str
    lambda_: Annotated[float | None, Field(alias="lambda")]
    expected_cost: float


@dataclass(frozen=True, slots=True)
class Assignment:
    """A pair to show: `left` first. `propensity` is the chance with which this ordered pair was drawn."""

    id: str
    context: str
    left: str
    right: str
    propensity: float
    expires_at: datetime
    payload: Any = None


@dataclass(frozen=True, slots=True)
class Acquired:
    """The policy and what was drawn by it."""

    policy: PolicyInForce
    assignments: list[Assignment]


@dataclass(frozen=True, slots=True)
class PairPropensity:
    """How often an ordered pair is drawn, averaged over known contexts; null where an item is newer than the policy."""

    left: str
    right: str
    propensity: float | None


@dataclass(frozen=True, slots=True)
class Policy(PolicyInForce):
    """The policy in force."""

    board: str
    mode: str
    budget: float
    exploration: float
    floor: float
    reliability: float | None
    contexts: int
    relative_variance: float
    pairs: list[PairPropensity]


IdempotencyKey = Annotated[
    str | None,
    Header(alias="Idempotency-Key", min_length=1, max_length=200, description="the same request has the same draw"),
]


@router.post("/acquire", response_model=Acquired)
def acquire(board: AcquirableBoard, draft: AcquireDraft, ports: PortsOf, key: IdempotencyKey = None) -> Response:
    """Pairs to label, drawn at random from the policy in force: for the contexts sent, or for `count` of the pool.

    Each context is one draw and counts as offered, whether or not a pair was drawn. Without contexts, drawn pairs that
    nobody holds come first. An empty list with `Retry-After` says that the pool has nothing left at the moment.
    """
    with UnitOfWork(ports.sessions) as work:
        return respond(run.acquire(work, board, draft, shelf=ports.shelf, key=key, now=datetime.now(UTC)))


@router.post("/assignments/{assignment}/release", status_code=204)
def release(board: AcquirableBoard, work: Work, assignment: str, draft: ReleaseDraft | None = None) -> None:
    """Give a pair back unanswered; nobody is asked for it again."""
    run.release(work, board, assignment, None if draft is None else draft.reason)


class NoParameters(BaseModel):
    """There is nothing to choose."""

    model_config = ConfigDict(extra="forbid")


@router.get("/policy", response_model=Policy)
def read_policy(board: ReadableBoard, work: Work, ports: PortsOf, _sent: Annotated[NoParameters, Query()]) -> Response:
    """The policy in force for requests that name no mode."""
    return Response(orjson.dumps(policies.policy(work, board, ports.shelf)), media_type="application/json")
