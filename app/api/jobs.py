"""Refits and their jobs over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, cast
from uuid import UUID

from app.api.deps import KnownCaller, OwnBoard, PortsOf, Work
from app.api.routing import api_router
from app.db.models.jobs import Job
from app.services import jobs

router = api_router(prefix="/v1", tag="jobs")
State = Literal["queued", "running", "succeeded", "failed"]


@dataclass(frozen=True, slots=True)
class JobView:
    """A job; `progress` is in [0, 1], `error` says why it failed."""

    id: UUID
    state: State
    progress: float
    error: str | None
    snapshot: UUID | None


@router.post("/boards/{board}/refit", status_code=202)
def refit(board: OwnBoard, work: Work, ports: PortsOf) -> JobView:
    """Ask for a refit. Its snapshot covers every vote that is committed by now."""
    return _view(jobs.request_refit(work, board, ports.queue))


@router.get("/jobs/{job}")
def read_job(job: UUID, work: Work, caller: KnownCaller) -> JobView:
    """How far a job has come."""
    return _view(jobs.find(work, caller, job))


def _view(job: Job) -> JobView:
    return JobView(job.id, cast(State, job.state), job.progress, job.error, job.snapshot_id)
