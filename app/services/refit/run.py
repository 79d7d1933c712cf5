"""Serve the refits asked of a board: one at a time, each job by a snapshot of votes no older than the job."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from uuid import UUID

from sqlalchemy.exc import DBAPIError

from app.cache.news import News, Silence
from app.db.locks import Lease
from app.db.models.snapshots import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.services.refit.crew.ports import IN_TURN, Crew
from app.services.refit.fit import Result, refit
from app.services.refit.gathering import gather
from app.services.refit.inputs import Inputs
from app.services.refit.snapshot import Gathered, rows_of_snapshot, spec_hash
from app.stats.errors import StatsError

MOST_ATTEMPTS = 3
"""Times that a job is taken up whose worker dies, or loses the database."""

UNEXPECTED = "the refit failed for a reason of its own; the service's log has the details"
DIED = f"the worker, or its connection to the database, ended {MOST_ATTEMPTS} times while it worked on this"

OpenWork = Callable[[], UnitOfWork]
OpenLease = Callable[[int], AbstractContextManager[Lease | None]]
CatchUp = Callable[[UnitOfWork, Board, Snapshot], None]


def _stay_behind(_work: UnitOfWork, _board: Board, _snapshot: Snapshot) -> None:
    """Votes that came in meanwhile wait for the next live update."""


logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refitter:
    """Does the refits of any board.

    Parameters
    ----------
    open_work : opens a transaction.
    open_lease : takes a board's refit lock, None where another holds it.
    crew : who computes the tasks of a board's refit.
    news : is told of refits that ended.
    catch_up : brings a snapshot that is about to be committed to the newest votes.
    """

    open_work: OpenWork
    open_lease: OpenLease
    crew: Callable[[int], Crew] = lambda _: IN_TURN
    news: News = field(default_factory=Silence)
    catch_up: CatchUp = _stay_behind

    def serve(self, board_id: int) -> None:
        """Serve all open jobs of a board, those that come in meanwhile too; at once where another does so already."""
        while self._serve_alone(board_id) and self._waits(board_id):
            continue

    def _serve_alone(self, board_id: int) -> bool:
        with self.open_lease(board_id) as lease:
            if lease is None:
                return False
            while jobs := self._claim(board_id):
                self._attempt(board_id, jobs, lease)
        return True

    def _waits(self, board_id: int) -> bool:
        with self.open_work() as work:
            return work.jobs.pending(board_id) is not None

    def _claim(self, board_id: int) -> list[UUID]:
        """Open jobs, without those that have had their chances."""
        with self.open_work() as work:
            claims = work.jobs.claim(board_id)
            spent = [claim.id for claim in claims if claim.attempts > MOST_ATTEMPTS]
            if spent:
                work.jobs.fail(spent, DIED)
            work.commit()
        self._announce(board_id, spent, "failed")
        return [claim.id for claim in claims if claim.id not in spent]

    def _attempt(self, board_id: int, jobs: list[UUID], lease: Lease) -> None:
        try:
            self._refit(board_id, jobs, lease)
        except Exception as error:
            if _cut_off(error):
                # Others may hold the board's lock by now. The next sweep finds the job without a worker.
                raise
            logger.exception("refit of board %s failed", board_id)
            reason = str(error) if isinstance(error, StatsError) else UNEXPECTED
            with self.open_work() as work:
                work.jobs.fail(jobs, reason)
                work.commit()
            self._announce(board_id, jobs, "failed")

    def _refit(self, board_id: int, jobs: list[UUID], lease: Lease) -> None:
        began = time.monotonic()
        board, inputs, gathered, known = self._gather(board_id)
        if known is not None or inputs is None:
            assert known is not None
            self._close(board_id, jobs, known)
            return
        result = refit(inputs, board.config, crew=self.crew(board_id), told=lambda share: self._tell(jobs, share))
        lease.confirm()
        self._store(board, result, gathered, jobs=jobs, began=began)

    def _gather(self, board_id: int) -> tuple[Board, Inputs | None, Gathered, UUID | None]:
        """What to fit; or, where nothing changed since the newest snapshot, that one's id."""
        with self.open_work() as work:
            marks = work.gather.marks(board_id)
        with self.open_work() as work:
            work.gather.freeze()
            board = work.boards.get(board_id)
            assert board is not None
            fingerprint = work.gather.fingerprint(board_id, marks)
            gathered = Gathered(marks, work.gather.through(board_id, marks.votes), fingerprint)
            newest = work.snapshots.newest(board_id)
            if newest and (newest.spec, newest.summary["inputs"]) == (spec_hash(board.config), fingerprint.inputs):
                return board, None, gathered, newest.id
            return board, gather(work.gather, board, marks), gathered, None

    def _store(self, board: Board, result: Result, gathered: Gathered, *, jobs: list[UUID], began: float) -> None:
        with self.open_work() as work:
            before = work.snapshots.newest(board.id) if result.summary["retired"] else None
            scores = [] if before is None else work.snapshots.all_scores(before.id)
            rows = rows_of_snapshot(board, result, gathered, before=scores, seconds=time.monotonic() - began)
            work.snapshots.add(*rows)
            self._catch_up(work, board, rows.snapshot)
            work.jobs.succeed(jobs, rows.snapshot.id)
            work.commit()
        self._announce(board.id, jobs, "succeeded", snapshot=rows.snapshot.id)

    def _catch_up(self, work: UnitOfWork, board: Board, snapshot: Snapshot) -> None:
        """Without it the snapshot would show fewer votes than the one before did, for a moment."""
        try:
            with work.session.begin_nested():
                self.catch_up(work, board, snapshot)
        except Exception:
            logger.exception("the new snapshot of board %s starts without the newest votes", board.id)

    def _close(self, board_id: int, jobs: list[UUID], snapshot_id: UUID) -> None:
        with self.open_work() as work:
            work.jobs.succeed(jobs, snapshot_id)
            work.commit()
        self._announce(board_id, jobs, "succeeded", snapshot=snapshot_id)

    def _announce(self, board_id: int, jobs: list[UUID], state: str, *, snapshot: UUID | None = None) -> None:
        for job in jobs:
            self.news.publish(board_id, "refit", job=job, state=state, snapshot=snapshot)

    def _tell(self, jobs: list[UUID], share: float) -> None:
        with self.open_work() as work:
            work.jobs.advance(jobs, share)
            work.commit()


def _cut_off(error: Exception) -> bool:
    """Whether a connection to the database ended, or none could be made."""
    return isinstance(error, DBAPIError) and (error.connection_invalidated or error.statement is None)
