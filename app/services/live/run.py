"""Take what came in since a refit into a board's rankings: at most once, one update at a time, a bounded one."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Lock as Mutex
from typing import Any
from uuid import UUID

from app.cache.news import News, Silence
from app.db.locks import Lease
from app.db.marks import Marks
from app.db.models.live import LiveState
from app.db.models.snapshots import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.services.live.reading import Reader, basis_of
from app.services.live.rows import LiveRows, live_rows
from app.services.live.scoring import Refitted, scored
from app.services.live.sums import SegmentSums
from app.services.live.touched import JUDGEMENTS, Touched
from app.services.refit.frozen import DRAWS, FrozenBoard
from app.services.refit.inputs import Inputs
from app.services.refit.snapshot import spec_hash

REFIT_FROM = 0.4
"""Live rows that are heard, as a share of the refitted ones, from which on a refit is asked for: it takes its time."""
MOST_SHARE = 0.5
"""Beyond it what the models' error adds to scores other than Borda's is no longer small beside the intervals."""
AT_ONCE = 2000
"""Votes, judgements, offers, and contexts newly offered."""
KEPT = 8
"""Refits kept open."""

RULES, ITEMS, SHARE, WAITING = "exclusions", "active_set", "many_rows", "votes_wait"
"""What only the next refit can take in, besides first draws and some judgements: other rules about votes; other items;
more rows than the models are good for; votes that replace others, lack a propensity or are dated before an item could
be drawn."""

OpenWork = Callable[[], UnitOfWork]
OpenLease = Callable[[int], AbstractContextManager[Lease | None]]

logger = logging.getLogger(__name__)


@dataclass
class Updater:
    """Updates the rankings of any board.

    Parameters
    ----------
    open_work : opens a transaction.
    open_lease : takes a board's lock for live updates, None where another holds it.
    news : is told of every update.
    wake : is told of a refit that was asked for.
    """

    open_work: OpenWork
    open_lease: OpenLease
    news: News = field(default_factory=Silence)
    wake: Callable[[int], None] = lambda _: None
    _kept: OrderedDict[UUID, Refitted] = field(default_factory=OrderedDict)
    _mutex: Mutex = field(default_factory=Mutex)

    def serve(self, board_id: int) -> None:
        """Take in everything that is there, also what comes in meanwhile; at once where another does so already."""
        while self._serve_alone(board_id) and self._lags(board_id):
            continue

    def catch_up(self, work: UnitOfWork, board: Board, snapshot: Snapshot) -> None:
        """Bring a snapshot that is not committed yet to where the board is, so that no ranking falls back behind."""
        if not _fits(board, snapshot):
            return
        with self.open_work() as other:
            marks = other.gather.marks(board.id)
        while self._step(work, board, snapshot, marks):
            continue

    def _serve_alone(self, board_id: int) -> bool:
        with self.open_lease(board_id) as lease:
            if lease is None:
                return False
            while self._update(board_id):
                continue
        return True

    def _lags(self, board_id: int) -> bool:
        with self.open_work() as work:
            snapshot = work.snapshots.newest(board_id)
            if not _fits(work.boards.get(board_id), snapshot) or snapshot is None:
                return False
            state = work.live.find(snapshot.id)
            last = snapshot.watermark if state is None else state.votes
            return work.live.waits(board_id, last)

    def _update(self, board_id: int) -> bool:
        """Take in the next votes; whether there may be more."""
        with self.open_work() as work:
            marks = work.gather.marks(board_id)
        with self.open_work() as work:
            board, snapshot = work.boards.get(board_id), work.snapshots.newest(board_id)
            if board is None or snapshot is None or not _fits(board, snapshot):
                return False
            known = work.live.find(snapshot.id)
            version = 0 if known is None else known.version
            more = self._step(work, board, snapshot, marks)
            state = work.live.find(snapshot.id)
            assert state is not None
            told = {"snapshot": snapshot.id, "version": state.version, "votes_through": state.votes_through}
            due = {SHARE, DRAWS} & {*state.document["reasons"]} or state.document["share"] >= REFIT_FROM
            if due and work.jobs.idle(board_id):
                work.jobs.request(board_id)
                work.after_commit(lambda: self.wake(board_id))
            if state.version != version:
                work.after_commit(lambda: self.news.publish(board_id, "rankings", **told))
            work.commit()
        return more

    def _step(self, work: UnitOfWork, board: Board, snapshot: Snapshot, marks: Marks) -> bool:
        """Bring the state of a snapshot as far as one step goes; whether the marks lie beyond."""
        basis, refitted = basis_of(snapshot), self._opened(work, board, snapshot)
        state = work.live.held(_start(board, snapshot, basis, refitted.board))
        said = _said(state)
        before = Marks(state.votes, state.offers, basis.rules, state.moment)
        # A snapshot that caught up while these marks were taken may be beyond them.
        marks = marks.beyond(before)
        offers, judges = board.config.unit == "context", refitted.board.judges
        now = work.live.reach(board.id, before, marks, size=AT_ONCE, offers=offers, judges=judges)
        touched = Reader(work, board, refitted.board, basis).touched(before, now)
        new = _Scored.of(touched.now, touched, refitted)
        old = None if touched.before is None else _Scored.of(touched.before, touched, refitted)
        change = new.sums(refitted, work, snapshot)
        if old is not None:
            change = _less(change, old.sums(refitted, work, snapshot))
        stored = _store(work, snapshot, change, refitted)
        _advance(state, now, touched, through=work.gather.through(board.id, now.votes))
        state.counted += new.rows.counted - (0 if old is None else old.rows.counted)
        state.rows += change[""].rows if "" in change else 0
        newcomers = _merged(state.document["newcomers"], new, old)
        reasons = self._reasons(work, board, snapshot, basis)
        reasons += [each for each in (DRAWS, JUDGEMENTS) if each in (*touched.waits, *state.document["reasons"])]
        # Draws that nobody answers are no more in the next refit than in this one.
        share = _share(stored[""], snapshot) if "" in stored else state.document["share"]
        _note(state, reasons, counted=newcomers, share=share)
        # A step that found nothing, as after a message too many, is no news.
        moved = "" in change and change[""].moves
        state.version += moved or state.version == 0 or _said(state) != said
        work.session.flush()
        return now != marks

    def _reasons(self, work: UnitOfWork, board: Board, snapshot: Snapshot, basis: Marks) -> list[str]:
        """What waits for a refit besides votes."""
        active = [item.name for item in work.gather.items(board.id) if item.active]
        changed = work.live.rules_changed(board.id, rules=basis.rules, since=basis.moment)
        found = {RULES: changed, ITEMS: active != snapshot.summary["items"]}
        return [reason for reason, holds in found.items() if holds]

    def _opened(self, work: UnitOfWork, board: Board, snapshot: Snapshot) -> Refitted:
        with self._mutex:
            if snapshot.id in self._kept:
                self._kept.move_to_end(snapshot.id)
                return self._kept[snapshot.id]
        opened = Refitted.open(work, board, snapshot)
        with self._mutex:
            self._kept[snapshot.id] = opened
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return opened


def takes_votes(snapshot: Snapshot) -> bool:
    """Whether votes can be added to a snapshot."""
    return "refits_only" in snapshot.summary and snapshot.summary["refits_only"] is None


def _fits(board: Board | None, snapshot: Snapshot | None) -> bool:
    """Whether the snapshot is what the board is now, and takes votes."""
    if board is None or snapshot is None:
        return False
    return takes_votes(snapshot) and spec_hash(board.config) == snapshot.spec


@dataclass(frozen=True)
class _Scored:
    """Rows at one mark with the inputs they are of."""

    rows: LiveRows
    inputs: Inputs

    @classmethod
    def of(cls, inputs: Inputs, touched: Touched, refitted: Refitted) -> _Scored:
        return cls(live_rows(inputs, touched, refitted.board), inputs)

    def sums(self, refitted: Refitted, work: UnitOfWork, snapshot: Snapshot) -> dict[str, SegmentSums]:
        return scored(refitted, work, snapshot, rows=self.rows, inputs=self.inputs)


def _start(board: Board, snapshot: Snapshot, basis: Marks, frozen: FrozenBoard) -> LiveState:
    """Before the first draw that the refit made no row of."""
    offers = basis.offers if frozen.answers is None else min(basis.offers, frozen.answers.young - 1)
    return LiveState(
        snapshot_id=snapshot.id,
        board_id=board.id,
        version=0,
        votes=basis.votes,
        offers=offers,
        moment=basis.moment,
        votes_through=snapshot.votes_through,
        seen=0,
        counted=0,
        excluded=0,
        rows=0,
        document={"reasons": [], "newcomers": {}, "share": 0.0},
    )


def _said(state: LiveState) -> tuple[Any, ...]:
    """What a step changes where it finds anything."""
    counts = state.votes, state.offers, state.seen, state.excluded, state.counted, state.rows
    return *counts, state.votes_through, state.document


def _advance(state: LiveState, now: Marks, touched: Touched, *, through: datetime | None) -> None:
    state.votes, state.offers, state.moment = now.votes, now.offers, now.moment
    state.votes_through = through or state.votes_through
    state.seen += touched.seen
    state.excluded += touched.excluded
    state.updated_at = datetime.now(UTC)


def _share(whole: SegmentSums, snapshot: Snapshot) -> float:
    return whole.heard_rows / max(int(snapshot.summary["rows"]), 1)


def _note(state: LiveState, reasons: list[str], *, counted: Mapping[str, int], share: float) -> None:
    """Write down what answers say."""
    waiting = state.seen - state.excluded - state.counted
    own = {WAITING: waiting > 0, SHARE: share > MOST_SHARE}
    said = [*reasons, *(reason for reason, holds in own.items() if holds)]
    document: dict[str, Any] = {"reasons": said, "newcomers": dict(counted), "share": share}
    state.document = document


def _store(
    work: UnitOfWork, snapshot: Snapshot, change: Mapping[str, SegmentSums], refitted: Refitted
) -> dict[str, SegmentSums]:
    """Add to what is stored of these segments; what they come to."""
    stored = work.live.sums(snapshot.id, change)
    total = {
        name: each
        + (
            SegmentSums.unpack(stored[name])
            if name in stored
            else SegmentSums.before(refitted.segment(work, snapshot, name))
        )
        for name, each in change.items()
    }
    work.live.store(snapshot.id, {name: each.pack() for name, each in total.items()})
    return total


def _less(new: Mapping[str, SegmentSums], old: Mapping[str, SegmentSums]) -> dict[str, SegmentSums]:
    """What changed, by segment."""
    gone = {name: each - each - each for name, each in old.items() if name not in new}
    return {**{name: each - old[name] if name in old else each for name, each in new.items()}, **gone}


def _merged(known: Mapping[str, int], new: _Scored, old: _Scored | None) -> dict[str, int]:
    before = {} if old is None else old.rows.newcomers
    names = {*known, *new.rows.newcomers}
    return {name: known.get(name, 0) + new.rows.newcomers.get(name, 0) - before.get(name, 0) for name in sorted(names)}
