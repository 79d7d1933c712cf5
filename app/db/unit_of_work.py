"""One use case, one transaction: the only place that commits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from psycopg.errors import DeadlockDetected
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session

from app.db.assignments import AssignmentRepository
from app.db.ballots import BallotRepository
from app.db.boards import BoardRepository
from app.db.contexts import ContextRepository
from app.db.exclusions import ExclusionRepository
from app.db.gather import GatherRepository
from app.db.items import ItemRepository
from app.db.jobs import JobRepository
from app.db.judgements import JudgementRepository
from app.db.keys import KeyRepository
from app.db.live import LiveRepository
from app.db.offers import OfferRepository
from app.db.snapshots import SnapshotRepository
from app.db.tasks import TaskRepository
from app.db.versions import VersionRepository
from app.db.votes import VoteRepository
from app.domain.errors import Unavailable

T = TypeVar("T")
Announce = Callable[[int], None]
"""Tells whoever listens that a board has new votes."""

ATTEMPTS = 8


def is_deadlock(error: OperationalError) -> bool:
    """Whether another writer waited for what this one held, and was let go first."""
    return isinstance(error.orig, DeadlockDetected)


def _to_nobody(_: int) -> None:
    """What commands do that run where nobody listens."""


class Collision(Exception):
    """Another writer committed between our reading and our writing."""


class UnitOfWork:
    """A transaction with its repositories; what is not committed when the block ends is rolled back.

    Parameters
    ----------
    session_factory : opens the session that carries the transaction.
    announce : told the board of new votes once they are durable.
    """

    session: Session

    def __init__(self, session_factory: Callable[[], Session], *, announce: Announce = _to_nobody) -> None:
        self._session_factory = session_factory
        self._announce = announce
        self._after_commit: list[Callable[[], None]] = []

    def __enter__(self) -> Self:
        self.session = session = self._session_factory()
        self.boards = BoardRepository(session)
        self.items = ItemRepository(session)
        self.contexts = ContextRepository(session)
        self.assignments = AssignmentRepository(session)
        self.offers = OfferRepository(session)
        self.votes = VoteRepository(session)
        self.ballots = BallotRepository(session)
        self.exclusions = ExclusionRepository(session)
        self.judgements = JudgementRepository(session)
        self.keys = KeyRepository(session)
        self.gather = GatherRepository(session)
        self.jobs = JobRepository(session)
        self.snapshots = SnapshotRepository(session)
        self.live = LiveRepository(session)
        self.tasks = TaskRepository(session)
        self.versions = VersionRepository(session)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._after_commit.clear()
        try:
            self.session.close()
        except DBAPIError:
            # What cannot be rolled back never goes back to the pool: it must not be missing there either.
            self.session.invalidate()

    def attempt(self, action: Callable[[], T]) -> T:
        """Run `action` in a savepoint, again from its start where another writer came in between."""
        for _ in range(ATTEMPTS):
            try:
                with self.session.begin_nested():
                    return action()
            except Collision:
                continue
            except OperationalError as error:
                if not is_deadlock(error):
                    raise
        raise Unavailable("busy", "other writers keep changing the same rows")

    def boldly(self, action: Callable[[bool], T], *, undone: type[Exception]) -> T:
        """Run `action(False)`; where others came in between, or it has to take something back, all anew, carefully.

        `action` is all of the transaction so far. Savepoints are for the second try: most transactions need none.
        """
        try:
            return action(False)
        except (Collision, undone):
            pass
        except OperationalError as error:
            if not is_deadlock(error):
                raise
        self._after_commit.clear()
        self.session.rollback()
        return action(True)

    def after_commit(self, action: Callable[[], None]) -> None:
        """Run `action` once the transaction is durable: messages never announce what may still be undone."""
        self._after_commit.append(action)

    def announce_votes(self, board_id: int) -> None:
        """Tell of a board's new votes once they are durable."""
        self.after_commit(partial(self._announce, board_id))

    def release(self) -> None:
        """End what was only read: the connection goes back until it is needed again.

        A request is answered in several steps of a few threads. One that kept its connection from step to step would
        wait for a thread, while the threads wait for connections.
        """
        self.session.rollback()

    def commit_each(self) -> None:
        """Make each statement a transaction of its own, from the first one on; who runs one says `committed`."""
        self.session.connection(execution_options={"isolation_level": "AUTOCOMMIT"})

    def commit(self) -> None:
        """Make the work durable, then run the actions that waited for it."""
        self.session.commit()
        self.committed()

    def committed(self) -> None:
        """Run the actions that waited for the work, which is durable."""
        actions, self._after_commit = self._after_commit, []
        for action in actions:
            action()
