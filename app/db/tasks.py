"""Tasks of refits: rows that several workers claim, and the bytes that they are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, CursorResult, delete, func, insert, or_, select, text, update
from sqlalchemy.orm import Session

from app.db.locks import Lock
from app.db.models.tasks import Batch, Task, TaskPiece

LEASE = 10
"""Seconds without a heartbeat after which a task is open again."""
STATE, GIVEN, MADE = "state", "given", "made"
"""Kinds of pieces."""

LEFT_OVER = text("""
DELETE FROM batches WHERE NOT EXISTS (
    SELECT FROM pg_locks
    WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
        AND classid = :lock AND objid = board_id::oid AND objsubid = 2
)
""")
"""Batches whose refit is gone, and its lock with it."""


class TaskRepository:
    """Batches of tasks of all boards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def open(self, batch: UUID, board_id: int, version: str) -> None:
        """Begin a batch of a board whose refit lock the caller holds: any other of the board is left over."""
        self._session.execute(delete(Batch).where(Batch.board_id == board_id))
        self._session.execute(insert(Batch).values(id=batch, board_id=board_id, version=version))

    def close(self, batch: UUID) -> None:
        """Let go a batch with all its tasks."""
        self._session.execute(delete(Batch).where(Batch.id == batch))

    def sweep(self) -> None:
        """Let go what refits left that ended without a word."""
        self._session.execute(LEFT_OVER, {"lock": int(Lock.REFIT)})

    def lasts(self, batch: UUID) -> bool:
        """Whether the batch is still there."""
        return self._session.get(Batch, batch, populate_existing=True) is not None

    def want(self, batch: UUID, version: str) -> bool | None:
        """Ask for the state of a batch: whether it is stored yet; None without such a batch of that version."""
        wanted = update(Batch).where(Batch.id == batch, Batch.version == version).values(wanted=True)
        return self._session.execute(wanted.returning(Batch.stored)).scalar_one_or_none()

    def wanted(self, batch: UUID) -> bool:
        """Whether somebody waits for the state."""
        query = select(Batch.id).where(Batch.id == batch, Batch.wanted, ~Batch.stored)
        return self._session.scalars(query).first() is not None

    def stored(self, batch: UUID) -> None:
        """Say that the state is there."""
        self._session.execute(update(Batch).where(Batch.id == batch).values(stored=True))

    def add(self, batch: UUID, number: int) -> None:
        """Open a task."""
        self._session.execute(insert(Task).values(batch_id=batch, number=number))

    def waiting(self, batch: UUID) -> bool:
        """Whether there is a task that nobody ever claimed."""
        query = select(Task.number).where(Task.batch_id == batch, Task.claims == 0).limit(1)
        return self._session.scalars(query).first() is not None

    def claim(self, batch: UUID, claimant: UUID, most: int) -> list[int]:
        """Take tasks that nobody ever claimed, first ones first."""
        return self._claim(batch, claimant, most, Task.claims == 0)

    def reclaim(self, batch: UUID, claimant: UUID, most: int) -> list[int]:
        """Take tasks that nobody claimed, or whose claimant gave them back or has died."""
        died = func.now() - Task.heartbeat_at > text(f"INTERVAL '{LEASE} seconds'")
        return self._claim(batch, claimant, most, or_(Task.claimed_by.is_(None), (Task.claimed_by != claimant) & died))

    def _claim(self, batch: UUID, claimant: UUID, most: int, free: ColumnElement[bool]) -> list[int]:
        query = select(Task.batch_id, Task.number).where(Task.batch_id == batch, Task.made_at.is_(None), free)
        # Apart from the update, which as part of it might look, and lock, more than once.
        found = query.order_by(Task.number).limit(most).with_for_update(skip_locked=True).cte("found")
        own = (Task.batch_id == found.c.batch_id) & (Task.number == found.c.number)
        values = {"claims": Task.claims + 1, "claimed_by": claimant, "heartbeat_at": func.now()}
        taken = update(Task).where(own).values(values).execution_options(synchronize_session=False)
        return sorted(self._session.scalars(taken.returning(Task.number)))

    def beat(self, claimant: UUID) -> None:
        """Say that a claimant lives."""
        own = update(Task).where(Task.claimed_by == claimant, Task.made_at.is_(None))
        self._session.execute(own.values(heartbeat_at=func.now()))

    def give_back(self, claimant: UUID) -> None:
        """Let others have the tasks that a claimant has not made."""
        own = update(Task).where(Task.claimed_by == claimant, Task.made_at.is_(None))
        self._session.execute(own.values(claimed_by=None))

    def make(self, batch: UUID, number: int) -> bool:
        """Close a task; False where another has made it, or nobody waits for it any more."""
        done = update(Task).where(Task.batch_id == batch, Task.number == number, Task.made_at.is_(None))
        result = self._session.execute(done.values(made_at=func.now()))
        assert isinstance(result, CursorResult)
        return result.rowcount == 1

    def made(self, batch: UUID, numbers: Sequence[int]) -> list[int]:
        """Which of these tasks are made."""
        query = select(Task.number).where(Task.batch_id == batch, Task.number.in_(numbers), Task.made_at.is_not(None))
        return sorted(self._session.scalars(query))

    def put(self, batch: UUID, kind: str, task: int, number: int, body: bytes) -> None:
        """Store a piece."""
        values: dict[str, Any] = {"batch_id": batch, "kind": kind, "task": task, "number": number, "body": body}
        self._session.execute(insert(TaskPiece).values(values))

    def pieces(self, batch: UUID, kind: str, task: int) -> Iterator[bytes]:
        """The pieces in their order, one at a time."""
        number = 0
        while (body := self._piece(batch, kind, task, number)) is not None:
            yield body
            number += 1

    def _piece(self, batch: UUID, kind: str, task: int, number: int) -> bytes | None:
        query = select(TaskPiece.body).where(
            TaskPiece.batch_id == batch, TaskPiece.kind == kind, TaskPiece.task == task, TaskPiece.number == number
        )
        return self._session.scalars(query).one_or_none()
