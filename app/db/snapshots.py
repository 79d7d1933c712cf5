"""Snapshots: what refits found. A snapshot never changes; only its artifacts and live sums go when newer ones come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy import delete, func, select, tuple_
from sqlalchemy.orm import Session

from app.db.models.live import LiveState, LiveSum
from app.db.models.snapshots import Artifact, Score, Snapshot
from app.db.models.votes import Vote

KEPT = 2
"""Newest snapshots of a board that keep their artifacts: readers of the last but one are not cut off."""


class Head(NamedTuple):
    """What a reader has to know of a board before it can say that nothing changed.

    Parameters
    ----------
    snapshot_id : the newest one.
    version : of the live update that its scores have taken in, 0 without one.
    pending : votes that these live scores have not taken in.
    since : votes after the snapshot itself.
    """

    snapshot_id: UUID | None
    version: int
    pending: int
    since: int

    def waiting(self, *, live: bool) -> int:
        """Votes that an answer has not taken in, which holds live votes or is as of the snapshot."""
        return self.pending if live else self.since


class SnapshotRepository:
    """Snapshots of all boards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, snapshot: Snapshot, scores: Sequence[Score], artifacts: Sequence[Artifact]) -> None:
        """Store a snapshot whole, and let go what older ones of its board kept to be read or added to."""
        self._session.add(snapshot)
        self._session.flush()
        self._session.add_all([*scores, *artifacts])
        self._session.flush()
        newest = select(Snapshot.id).where(Snapshot.board_id == snapshot.board_id)
        kept = newest.order_by(Snapshot.computed_at.desc()).limit(KEPT)
        for table in (Artifact, LiveSum, LiveState):
            gone = table.snapshot_id.in_(newest), table.snapshot_id.not_in(kept)
            self._session.execute(delete(table).where(*gone))

    def get(self, snapshot_id: UUID) -> Snapshot:
        """The snapshot of this id."""
        return self._session.get_one(Snapshot, snapshot_id)

    def newest(self, board_id: int) -> Snapshot | None:
        """The snapshot that rankings are read from."""
        query = select(Snapshot).where(Snapshot.board_id == board_id).order_by(Snapshot.computed_at.desc())
        return self._session.scalars(query.limit(1)).first()

    def head(self, board_id: int) -> Head:
        """The newest snapshot, and how many votes came after what it covers."""
        query = select(Snapshot.id, Snapshot.watermark, LiveState).where(Snapshot.board_id == board_id)
        query = query.outerjoin(LiveState, LiveState.snapshot_id == Snapshot.id)
        newest = self._session.execute(query.order_by(Snapshot.computed_at.desc()).limit(1)).one_or_none()
        snapshot_id, watermark, live = newest or (None, 0, None)
        if live is None:
            waiting = self._after(board_id, watermark)
            return Head(snapshot_id, 0, waiting, waiting)
        beyond = self._after(board_id, live.votes)
        waiting = live.seen - live.excluded - live.counted
        return Head(snapshot_id, live.version, beyond + waiting, beyond + live.seen)

    def _after(self, board_id: int, number: int) -> int:
        query = select(func.count()).where(Vote.board_id == board_id, Vote.id > number)
        return self._session.execute(query).scalar_one()

    def scores(self, snapshot_id: UUID, estimand: str, estimator: str, segment: str) -> list[Score]:
        """The stored rankings of one kind: on all pairs, and on the observed ones where these differ."""
        query = select(Score).where(
            Score.snapshot_id == snapshot_id,
            Score.estimand == estimand,
            Score.estimator == estimator,
            Score.segment == segment,
        )
        return list(self._session.scalars(query.order_by(Score.pairs)))

    def moments(self, board_id: int, since: datetime | None, until: datetime | None) -> list[tuple[UUID, datetime]]:
        """Snapshots that were computed within [since, until), oldest first."""
        query = select(Snapshot.id, Snapshot.computed_at).where(Snapshot.board_id == board_id)
        if since is not None:
            query = query.where(Snapshot.computed_at >= since)
        if until is not None:
            query = query.where(Snapshot.computed_at < until)
        return [(row[0], row[1]) for row in self._session.execute(query.order_by(Snapshot.computed_at))]

    def series(self, snapshot_ids: Sequence[UUID], *kind: str) -> list[tuple[Snapshot, list[Score]]]:
        """Snapshots, oldest first, each with its stored rankings of one estimand, estimator and segment."""
        query = select(Snapshot).where(Snapshot.id.in_(snapshot_ids)).order_by(Snapshot.computed_at)
        found: dict[UUID, list[Score]] = {each: [] for each in snapshot_ids}
        of_kind = tuple_(Score.estimand, Score.estimator, Score.segment) == kind
        for score in self._session.scalars(
            select(Score).where(Score.snapshot_id.in_(snapshot_ids), of_kind).order_by(Score.pairs)
        ):
            found[score.snapshot_id].append(score)
        return [(snapshot, found[snapshot.id]) for snapshot in self._session.scalars(query)]

    def all_scores(self, snapshot_id: UUID) -> list[Score]:
        """All rankings of a snapshot."""
        return list(self._session.scalars(select(Score).where(Score.snapshot_id == snapshot_id)))

    def combinations(self, snapshot_id: UUID) -> list[tuple[str, str, str, str]]:
        """Estimand, estimator, pairs and segment of every ranking of a snapshot."""
        query = select(Score.estimand, Score.estimator, Score.pairs, Score.segment)
        rows = self._session.execute(query.where(Score.snapshot_id == snapshot_id))
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    def artifacts(self, snapshot_id: UUID, kind: str) -> list[bytes]:
        """The bodies of a kind, by fold or part; none once they have gone."""
        query = select(Artifact.body).where(Artifact.snapshot_id == snapshot_id, Artifact.kind == kind)
        return list(self._session.scalars(query.order_by(Artifact.fold)))

    def artifact(self, snapshot_id: UUID, kind: str, number: int) -> bytes:
        """One of the bodies of a kind."""
        query = select(Artifact.body).where(
            Artifact.snapshot_id == snapshot_id, Artifact.kind == kind, Artifact.fold == number
        )
        return self._session.scalars(query).one()
