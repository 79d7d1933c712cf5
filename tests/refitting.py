"""Boards with made-up votes, refitted in the test's own process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from sqlalchemy import Engine

from app.cache.news import News, Silence
from app.db.engine import open_sessions
from app.db.locks import Lock, lease
from app.db.models.jobs import Job
from app.db.models.snapshots import Snapshot
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import DRAFT, Board
from app.domain.items import ItemDraft
from app.domain.parsing import parse
from app.services import boards, items, votes
from app.services.refit.run import Refitter

ITEMS = ("ada", "bell", "curie", "dirac")
OUTCOMES = ("left", "right", "tie", "both_bad")


@dataclass(frozen=True)
class Bench:
    """Refits on one database."""

    engine: Engine

    def work(self) -> UnitOfWork:
        """A transaction."""
        return UnitOfWork(open_sessions(self.engine))

    @property
    def refitter(self) -> Refitter:
        return Refitter(self.work, partial(lease, self.engine, Lock.REFIT))

    def refit(self, slug: str, *, news: News | None = None) -> Snapshot:
        """Ask for a refit, do it, and return the snapshot."""
        return self._snapshot(self.serve(slug, news=news).id)

    def refit_while(self, slug: str, meanwhile: Callable[[], Any]) -> Snapshot:
        """The snapshot of a refit between whose marks and whose reading something happens."""
        opened = 0

        def open_work() -> UnitOfWork:
            nonlocal opened
            opened += 1
            # Jobs are claimed, marks are taken, then votes are read.
            if opened == 3:
                meanwhile()
            return self.work()

        job = self.request(slug)
        replace(self.refitter, open_work=open_work).serve(job.board_id)
        return self._snapshot(job.id)

    def serve(self, slug: str, *, news: News | None = None) -> Job:
        """Ask for a refit and see the job to its end."""
        job = self.request(slug)
        replace(self.refitter, news=news or Silence()).serve(job.board_id)
        return self.job(job.id)

    def request(self, slug: str) -> Job:
        """Ask for a refit."""
        with self.work() as work:
            board = work.boards.find(slug)
            assert board is not None
            job = work.jobs.request(board.id)
            work.commit()
        return self.job(job.id)

    def job(self, job_id: UUID) -> Job:
        """The job as it is now."""
        with self.work() as work:
            job = work.jobs.find(job_id)
            assert job is not None
            return job

    def _snapshot(self, job_id: UUID) -> Snapshot:
        job = self.job(job_id)
        assert job.state == "succeeded", job.error
        assert job.snapshot_id is not None
        with self.work() as work:
            return work.snapshots.get(job.snapshot_id)


def ballots(
    items: Sequence[str], size: int, *, seed: int, voters: int | None = None, contexts: int | None = None
) -> list[dict[str, Any]]:
    """Votes on uniformly drawn ordered pairs, the earlier item the better one, with their propensities.

    With `contexts`, votes go to that many prompts with a language and a length; else each is a context of its own.
    """
    rng = np.random.default_rng(seed)
    return list(_ballots(items, size, rng, voters=voters, contexts=contexts))


def features_of(number: int) -> dict[str, Any]:
    """The features of a prompt."""
    return {"lang": ("de", "en")[number % 2], "size": round((number * 0.37) % 1, 3)}


FEATURES = [{"name": "lang", "kind": "categorical"}, {"name": "size", "kind": "numeric"}]


def _ballots(
    items: Sequence[str], size: int, rng: np.random.Generator, *, voters: int | None, contexts: int | None
) -> Iterator[dict[str, Any]]:
    given: set[tuple[object, ...]] = set()
    for _ in range(size):
        left, right = rng.choice(len(items), size=2, replace=False)
        edge = 0.35 * np.sign(right - left) + 0.05
        chances = np.array([0.375 + edge / 2, 0.375 - edge / 2, 0.15, 0.10])
        vote: dict[str, Any] = {
            "left": items[left],
            "right": items[right],
            "outcome": OUTCOMES[rng.choice(4, p=chances)],
            "propensity": 1 / (len(items) * (len(items) - 1)),
        }
        prompt = None if contexts is None else int(rng.integers(contexts))
        if prompt is not None:
            vote["context"] = {"id": f"p{prompt}", "features": features_of(prompt)}
        if voters is not None:
            free = [v for v in rng.permutation(voters) if (v, prompt, left, right) not in given or prompt is None]
            given.add((free[0], prompt, left, right))
            vote["voter"] = f"v{free[0]}"
        yield vote


def new_board(bench: Bench, names: Sequence[str] = ITEMS, **fields: Any) -> Board:
    """A board with these items, drawable from the start."""
    with bench.work() as work:
        board = boards.create(work, parse(DRAFT, {"slug": f"b-{uuid4().hex}", "features": FEATURES, **fields}))
    for name in names:
        with bench.work() as work:
            items.put(work, board, name, ItemDraft())
    return board


def cast(bench: Bench, board: Board, sent: Sequence[dict[str, Any]]) -> None:
    """Votes that the board takes, every one."""
    with bench.work() as work:
        results = votes.record(work, board, votes.read_ballots(sent), now=datetime.now(UTC))
    assert {result.status for result in results} == {"created"}
