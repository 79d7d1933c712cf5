"""Ask for refits, and see what became of them."""

from __future__ import annotations

from functools import partial
from uuid import UUID

from app.db.models.jobs import Job
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.errors import Missing
from app.domain.keys import Caller
from app.queue import Queue

MOST_FAILURES = 5
"""Refits that fail in a row before only a person asks for another one."""


def request_refit(work: UnitOfWork, board: Board, queue: Queue) -> Job:
    """Ask for a refit of the board and commit; its snapshot will cover every vote that is committed by now."""
    job = work.jobs.request(board.id)
    work.after_commit(partial(queue.refit, board.id))
    work.commit()
    return job


def find(work: UnitOfWork, caller: Caller, job_id: UUID) -> Job:
    """The job, if the caller may read its board."""
    job = work.jobs.find(job_id)
    if job is None:
        raise Missing("unknown-job", "there is no such job", got=str(job_id))
    caller.require("read", job.board_id)
    return job


def sweep(work: UnitOfWork, queue: Queue) -> None:
    """Ask for the refits that are due, and wake workers for every board with open jobs that nobody works on.

    And for every board with votes that its rankings have not taken in. Tasks of refits that ended without a word go.
    """
    for board_id in work.jobs.due(attempts=MOST_FAILURES):
        work.jobs.request(board_id)
    for board_id in work.jobs.lagging():
        work.after_commit(partial(queue.refit, board_id))
    for board_id in work.live.lagging():
        work.after_commit(partial(queue.live, board_id))
    work.tasks.sweep()
    work.commit()
