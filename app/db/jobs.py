"""Jobs: the durable list of work asked for."""

from __future__ import annotations

from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.db.models import Job


class JobRepository:
    """Jobs of all boards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, board_id: int, kind: str) -> Job:
        """Queue a job."""
        job = Job(board_id=board_id, kind=kind, state="queued")
        self._session.add(job)
        self._session.flush()
        return job

    def find(self, job_id: UUID) -> Job | None:
        """The job, if there is one."""
        return self._session.get(Job, job_id)

    def pending(self, board_id: int) -> Job | None:
        """The board's oldest job that waits for a worker."""
        query = select(Job).where(Job.board_id == board_id, Job.state == "queued").order_by(Job.created_at)
        return self._session.scalars(query.limit(1)).first()
