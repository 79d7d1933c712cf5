"""Jobs: the durable list of work asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import func, select, text, update
from sqlalchemy.orm import Session

from app.db.locks import Lock
from app.db.models.jobs import Job

REFIT = "refit"

LAGGING = text("""
SELECT DISTINCT board_id FROM jobs
WHERE state = 'queued' OR state = 'running' AND NOT EXISTS (
    SELECT FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid = :lock AND objid = board_id::oid AND objsubid = 2
)
ORDER BY board_id
""")
"""Boards with jobs that nobody took, or whose worker is gone and its lock with it."""

DUE = text("""
SELECT boards.id
FROM boards
LEFT JOIN LATERAL (
    SELECT watermark, summary FROM snapshots WHERE board_id = boards.id ORDER BY computed_at DESC LIMIT 1
) AS newest ON TRUE
CROSS JOIN LATERAL (
    SELECT (config -> 'refit' ->> 'votes')::bigint AS votes,
           (config -> 'refit' ->> 'seconds')::float8 * INTERVAL '1 second' AS patience
) AS rule
CROSS JOIN LATERAL (
    SELECT (
        SELECT count(*) FROM (
            SELECT FROM votes
            WHERE board_id = boards.id AND id > coalesce(watermark, 0) ORDER BY id LIMIT rule.votes
        ) AS first
        -- Numbers are those of all boards: where they lie closer than that, no vote has to be counted.
        WHERE (SELECT max(id) FROM votes WHERE board_id = boards.id) - coalesce(watermark, 0) >= rule.votes
    ) AS votes, (
        SELECT received_at FROM votes
        WHERE board_id = boards.id AND id > coalesce(watermark, 0) ORDER BY id LIMIT 1
    ) AS since
) AS waiting
CROSS JOIN LATERAL (
    SELECT count(*) AS number, max(finished_at) AS last FROM jobs
    WHERE board_id = boards.id AND state = 'failed' AND created_at > coalesce(
        (SELECT max(created_at) FROM jobs WHERE board_id = boards.id AND state = 'succeeded'), '-infinity'
    )
) AS failures
WHERE deleted_at IS NULL
    AND NOT EXISTS (SELECT FROM jobs WHERE board_id = boards.id AND state IN ('queued', 'running'))
    AND (
        waiting.votes >= rule.votes
        OR waiting.since <= now() - rule.patience
        OR newest.summary -> 'items' <> (
            SELECT coalesce(jsonb_agg(name ORDER BY name COLLATE "C"), '[]') FROM items
            WHERE board_id = boards.id
                AND EXISTS (SELECT FROM item_spans WHERE item_id = items.id AND active_to IS NULL)
        )
        OR EXISTS (
            SELECT FROM exclusions
            WHERE board_id = boards.id
                AND (
                    id > (newest.summary -> 'marks' ->> 'rules')::bigint
                    OR lifted_at > (newest.summary -> 'marks' ->> 'moment')::timestamptz
                )
                AND coalesce(lifted_at, created_at) <= now() - rule.patience
        )
        OR EXISTS (
            SELECT FROM judgements
            WHERE board_id = boards.id
                AND created_at > (newest.summary -> 'marks' ->> 'moment')::timestamptz
                AND created_at <= now() - rule.patience
        )
        OR config ->> 'unit' = 'context' AND EXISTS (
            SELECT FROM contexts
            WHERE board_id = boards.id
                AND offered_at > (newest.summary -> 'marks' ->> 'moment')::timestamptz
                AND offered_at <= now() - rule.patience
        )
    )
    AND (
        failures.number = 0
        OR failures.number < :attempts
        AND now() > failures.last + INTERVAL '10 seconds' * power(2, failures.number)
        AND EXISTS (
            SELECT FROM votes
            WHERE board_id = boards.id AND id > coalesce(watermark, 0) AND received_at > failures.last
        )
    )
ORDER BY boards.id
""")
"""Boards due by their own rule, by another active set, by rules about votes, by judgements, or by contexts offered that
are rows; after failures, on new votes only."""


class Claim(NamedTuple):
    """A job taken up, and how many times it has been."""

    id: UUID
    attempts: int


class JobRepository:
    """Jobs of all boards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def request(self, board_id: int) -> Job:
        """The board's waiting job: it will see everything committed by now. A new one where none waits."""
        waiting = self.pending(board_id)
        return self.add(board_id, REFIT) if waiting is None else waiting

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
        """The board's oldest job that waits; no worker takes it up before this transaction ends."""
        query = select(Job).where(Job.board_id == board_id, Job.state == "queued").order_by(Job.created_at)
        return self._session.scalars(query.limit(1).with_for_update(key_share=True)).first()

    def idle(self, board_id: int) -> bool:
        """Whether no job of the board waits or is worked on, and the last one did not fail."""
        query = select(Job.state).where(Job.board_id == board_id).order_by(Job.created_at.desc()).limit(1)
        return self._session.scalars(query).first() in (None, "succeeded")

    def claim(self, board_id: int) -> list[Claim]:
        """Take up all open jobs of a board; the caller holds its refit lock, so that running ones are orphans."""
        statement = (
            update(Job)
            .where(Job.board_id == board_id, Job.state.in_(("queued", "running")))
            .values(state="running", progress=0.0, attempts=Job.attempts + 1)
            .values(started_at=func.now(), heartbeat_at=func.now())
            .returning(Job.id, Job.attempts)
        )
        return [Claim(row.id, row.attempts) for row in self._session.execute(statement)]

    def advance(self, jobs: Sequence[UUID], progress: float) -> None:
        """Say how far jobs have come, in [0, 1]."""
        values = {"progress": progress, "heartbeat_at": func.now()}
        self._session.execute(update(Job).where(Job.id.in_(jobs)).values(values))

    def succeed(self, jobs: Sequence[UUID], snapshot_id: UUID) -> None:
        """Close jobs with the snapshot that serves them."""
        values = {"state": "succeeded", "progress": 1.0, "snapshot_id": snapshot_id, "finished_at": func.now()}
        self._session.execute(update(Job).where(Job.id.in_(jobs)).values(values))

    def fail(self, jobs: Sequence[UUID], error: str) -> None:
        """Close jobs that led to nothing."""
        values = {"state": "failed", "error": error, "finished_at": func.now()}
        self._session.execute(update(Job).where(Job.id.in_(jobs)).values(values))

    def lagging(self) -> list[int]:
        """Boards whose open jobs nobody works on."""
        return list(self._session.scalars(LAGGING, {"lock": int(Lock.REFIT)}))

    def due(self, *, attempts: int) -> list[int]:
        """Boards that a refit is due for; at most `attempts` times in a row where it fails."""
        return list(self._session.scalars(DUE, {"attempts": attempts}))
