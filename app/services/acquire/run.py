"""Hand pairs out: drawn for the contexts of the request, or for some of the pool."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import ceil
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np

from app.db.assignments import DrawnPair, Waiting
from app.db.unit_of_work import UnitOfWork
from app.domain.acquire import (
    AcquireDraft,
    AskedContext,
    check,
    digest,
    key_taken,
    not_open,
    unknown_assignment,
    uuid_of,
)
from app.domain.boards import Board
from app.domain.contexts import Known, adds, contradiction
from app.domain.errors import Missing
from app.services.acquire.answer import Answer
from app.services.acquire.drawing import Drawer, Drawn
from app.services.acquire.leasing import POOL, SENT, Lessor, seen, wanted
from app.services.loaded.shelf import Shelf

generator = np.random.default_rng
RETRY_AFTER = "retry_after"
CONTEXTS_AT_ONCE = 64
"""Contexts of the pool that are drawn for in one go, where few of them bring a pair."""


def acquire(
    work: UnitOfWork, board: Board, draft: AcquireDraft, *, shelf: Shelf, key: str | None, now: datetime
) -> Answer:
    """Draw, record every context that was offered, lease what was drawn, and commit.

    Parameters
    ----------
    shelf : the policies in force.
    key : of a request that may come again: the same request has the same answer.
    now : when leases begin.
    """
    check(draft)
    # What is offered before a refit reads how far it goes is committed by then; nor do the board and its items change.
    work.votes.lock(board.id, counted=False)
    board = work.boards.fresh(board)
    if key is not None:
        work.assignments.alone(board.id, f"key:{key}")
        before = work.assignments.answered(board.id, key)
        if before is not None:
            if before.digest != digest(draft):
                raise key_taken(key)
            document = dict(before.document)
            return Answer(document, document.pop(RETRY_AFTER, None))
    drawer = _drawer(work, board, draft, shelf)
    drawer.check()
    desk = _Desk(work, board, drawer, draft.annotator, now)
    rows = desk.serve(draft.contexts) if draft.contexts is not None else desk.serve_pool(draft.count or 1)
    document = {"policy": drawer.policy(), "assignments": rows}
    retry_after = desk.wait() if draft.contexts is None and not rows else None
    if key is not None:
        kept = document if retry_after is None else {**document, RETRY_AFTER: retry_after}
        work.assignments.remember(board.id, key, digest(draft), kept)
    work.commit()
    return Answer(document, retry_after)


def release(work: UnitOfWork, board: Board, assignment: str, reason: str | None) -> None:
    """Give a pair back unanswered and commit: nobody is asked for it again."""
    number = uuid_of(assignment)
    found = {} if number is None else work.assignments.locked(board.id, [number])
    if number is None or number not in found:
        raise Missing("unknown-assignment", unknown_assignment(assignment).detail, got=assignment)
    if found[number].state != "leased":
        raise not_open(assignment, found[number].state)
    work.assignments.settle([number], "skipped", reason=reason)
    work.commit()


def _drawer(work: UnitOfWork, board: Board, draft: AcquireDraft, shelf: Shelf) -> Drawer:
    standing = work.assignments.standing(board.id)
    mode = draft.mode or board.config.acquisition.mode
    advisor = shelf.advisor(board.id, standing.snapshot_id)
    return Drawer(board.config, advisor, standing.items, mode, generator())


class _Place(NamedTuple):
    """A context of a draw."""

    id: int
    name: str
    payload: Any


class _Desk:
    """One request at work."""

    def __init__(self, work: UnitOfWork, board: Board, drawer: Drawer, annotator: str | None, now: datetime) -> None:
        self._work, self._board, self._drawer = work, board, drawer
        self._annotator, self._now = annotator, now
        self._lessor = Lessor.of(board, annotator, policy=drawer.snapshot_id, now=now)
        if annotator is not None:
            # Two requests of one annotator at a time could be given the same pair twice.
            work.assignments.alone(board.id, f"annotator:{annotator}")

    def serve(self, asked: Sequence[AskedContext]) -> list[dict[str, Any]]:
        """Pairs for contexts of the request: each is offered now, whether or not anything is drawn."""
        known, offers = self._offered(asked)
        contexts = [_Place(each.id, sent.id, each.payload) for sent, each in zip(asked, known, strict=True)]
        drawn = self._drawer.draw([seen(self._board, each) for each in known])
        return self._write(contexts, offers, drawn, slots=1, most=len(drawn))

    def serve_pool(self, count: int) -> list[dict[str, Any]]:
        """Up to `count` pairs of the pool: drawn ones that wait first, then contexts that nobody was offered yet."""
        rows = self._lease_waiting(count)
        while len(rows) < count:
            taken = self._work.assignments.take_pool(self._board.id, min(count - len(rows), CONTEXTS_AT_ONCE))
            if not taken:
                break
            contexts = [_Place(each.id, each.name, each.payload) for each in taken]
            drawn = self._drawer.draw([seen(self._board, each) for each in taken])
            offers = self._work.assignments.offer(self._board.id, [each.id for each in taken], source=POOL)
            slots = self._board.config.acquisition.overlap
            rows += self._write(contexts, offers, drawn, slots=slots, most=count - len(rows))
        return rows

    def wait(self) -> int:
        """Seconds until something may come back to the pool."""
        items = [item.id for item in self._drawer.items]
        if self._work.assignments.in_hand(self._board.id, self._annotator, items=items, now=self._now):
            # Another request looks at what is left, and may leave some of it.
            return 1
        expiry = self._work.assignments.next_expiry(self._board.id)
        if expiry is None:
            return int(self._board.config.acquisition.lease_seconds)
        return max(1, ceil((expiry - self._now).total_seconds()))

    def _offered(self, asked: Sequence[AskedContext]) -> tuple[list[Known], list[int]]:
        """The contexts as they are stored now, and one offer of each."""
        asked_for = wanted(self._board, asked)
        found = self._work.contexts.offer(self._board.id, asked_for, source=SENT)
        known = {name: each.context for name, each in found.items()}
        news = {each.id: asked_for[name] for name, each in known.items() if adds(asked_for[name], each)}
        if news:
            self._work.contexts.learn(news)
            known = self._work.contexts.find(self._board.id, asked_for)
        for number, each in enumerate(asked):
            differs = contradiction(asked_for[each.id], known[each.id])
            if differs is not None:
                raise differs.under(f"contexts.{number}")
        return [known[each.id] for each in asked], [found[each.id].offer for each in asked]

    def _lease_waiting(self, count: int) -> list[dict[str, Any]]:
        """Drawn pairs that nobody holds: new leases of open ones, new assignments where a lease has run out."""
        items = {item.id: item for item in self._drawer.items}
        found = self._work.assignments.waiting(
            self._board.id, self._annotator, items=items, limit=2 * count, now=self._now
        )
        # Several slots of one draw wait where annotators overlap: one annotator has one of them.
        units = {(waits.context, waits.left, waits.right): waits for waits in reversed(found)}
        chosen = list(reversed(units.values()))[:count]
        opened = [waits.id for waits in chosen if waits.state == "open"]
        lapsed = [waits for waits in chosen if waits.state != "open"]
        renewed = {waits.id: self._renewed(waits) for waits in lapsed}
        if opened:
            self._work.assignments.lease(opened, self._annotator, self._lessor.until)
        if lapsed:
            self._work.assignments.lapse([waits.id for waits in lapsed])
            self._work.assignments.assign(self._board.id, list(renewed.values()))
        rows = []
        for waits in chosen:
            number = renewed[waits.id].id if waits.id in renewed else waits.id
            place = _Place(waits.context, waits.context_name, waits.payload)
            rows.append(
                self._lessor.shown(number, place[1:], (items[waits.left], items[waits.right]), waits.propensity)
            )
        return rows

    def _renewed(self, waits: Waiting) -> DrawnPair:
        sides, drawn = (waits.left, waits.right), (waits.propensity, waits.policy)
        return DrawnPair(
            uuid4(), waits.offer, waits.context, *sides, *drawn, self._annotator, "leased", self._lessor.until
        )

    def _write(
        self, places: Sequence[_Place], offers: Sequence[int], drawn: Sequence[Drawn], *, slots: int, most: int
    ) -> list[dict[str, Any]]:
        """Store what was drawn, `slots` assignments each; lease the first slots, `most` at most."""
        had = self._had(places)
        pairs: list[DrawnPair] = []
        rows: list[dict[str, Any]] = []
        for each in drawn:
            place = places[each.at]
            # Nobody is asked twice: the draw stays, as one that is never answered.
            first = "skipped" if (place.id, each.left.id, each.right.id) in had else "leased"
            first = "open" if first == "leased" and len(rows) >= most else first
            states = [first, *["open"] * (slots - 1)]
            made = [self._lessor.pair(each, state, offer=offers[each.at], context=place.id) for state in states]
            pairs += made
            if first == "leased":
                rows.append(self._lessor.shown(made[0].id, place[1:], (each.left, each.right), each.propensity))
        if pairs:
            self._work.assignments.assign(self._board.id, pairs)
        return rows

    def _had(self, places: Sequence[_Place]) -> set[tuple[int, int, int]]:
        if self._annotator is None or not places:
            return set()
        return self._work.assignments.had([place.id for place in places], self._annotator)
