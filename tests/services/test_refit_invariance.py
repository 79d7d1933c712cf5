"""What a snapshot does not depend on: the order of arrival, the names of items, how often one asks."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from threading import Thread
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from app.db.locks import Lock, lease
from app.db.models.snapshots import Score, Snapshot
from app.domain.boards import Board
from app.domain.items import ItemDraft
from app.services import items
from app.services.live.run import Updater
from tests.refitting import ITEMS, Bench, ballots, cast, new_board

MOMENT = "2026-01-01T00:00:00Z"


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def table(bench: Bench, snapshot: Snapshot, estimand: str) -> Score:
    with bench.work() as work:
        return work.snapshots.scores(snapshot.id, estimand, "debiased", "")[0]


BOARDS: list[dict[str, Any]] = [
    {},
    {"unit": "context", "cluster": "voter"},
    {"propensity": "estimated", "segments": ["lang"]},
    {"cluster": "both", "population": "fixed"},
]


@pytest.mark.parametrize("fields", BOARDS)
def test_shuffled_votes_leave_the_snapshot_equal_to_the_bit(bench: Bench, fields: dict[str, Any]) -> None:
    sent = [vote | {"created_at": MOMENT} for vote in ballots(ITEMS, 150, seed=1, contexts=70, voters=12)]
    for vote in sent[::3]:
        del vote["voter"]
    order = np.random.default_rng(2).permutation(len(sent))
    digests = set()
    for arrival in (range(len(sent)), order):
        board = new_board(bench, **fields)
        for part in np.array_split(np.array(arrival), 3):
            cast(bench, board, [sent[at] for at in part])
        digests.add(bench.refit(board.slug).digest)
    assert len(digests) == 1


@pytest.mark.parametrize("estimand", ["borda", "bt", "rc"])
def test_renamed_items_have_their_old_scores(bench: Bench, estimand: str) -> None:
    names = dict(zip(ITEMS, ("zeta", "mu", "alpha", "nu"), strict=True))
    sent = ballots(ITEMS, 300, seed=3, contexts=150)
    renamed = [vote | {side: names[vote[side]] for side in ("left", "right")} for vote in sent]
    first, second = new_board(bench), new_board(bench, tuple(names.values()))
    cast(bench, first, sent)
    cast(bench, second, renamed)
    before = table(bench, bench.refit(first.slug), estimand)
    after = table(bench, bench.refit(second.slug), estimand)
    place = [after.items.index(names[item]) for item in before.items]
    assert np.array(after.value)[place] == pytest.approx(before.value, abs=1e-6)
    covariance = np.frombuffer(after.covariance).reshape(4, 4)[np.ix_(place, place)]
    assert covariance == pytest.approx(np.frombuffer(before.covariance).reshape(4, 4), abs=1e-7)


def test_asking_again_changes_nothing_until_something_changed(bench: Bench) -> None:
    board = new_board(bench)
    cast(bench, board, ballots(ITEMS, 60, seed=4))
    first = bench.refit(board.slug)
    assert bench.refit(board.slug).id == first.id
    cast(bench, board, ballots(ITEMS, 1, seed=5))
    second = bench.refit(board.slug)
    assert second.watermark > first.watermark
    with bench.work() as work:
        items.put(work, board, "extra", ItemDraft())
    assert bench.refit(board.slug).id != second.id


def test_refits_at_the_same_time_leave_one_snapshot(bench: Bench) -> None:
    board = new_board(bench)
    cast(bench, board, ballots(ITEMS, 200, seed=6))
    found: list[Any] = []
    threads = [Thread(target=lambda: found.append(bench.serve(board.slug))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    bench.refitter.serve(board.id)
    jobs = [bench.job(job.id) for job in found]
    assert {job.state for job in jobs} == {"succeeded"}
    assert len({job.snapshot_id for job in jobs}) == 1
    assert len(list(snapshots(bench, board))) == 1


def snapshots(bench: Bench, board: Board) -> Iterator[Snapshot]:
    with bench.work() as work:
        yield from work.session.query(Snapshot).filter_by(board_id=board.id)


def test_only_the_newest_two_snapshots_keep_their_rows_and_live_sums(bench: Bench) -> None:
    board, update = new_board(bench), Updater(bench.work, partial(lease, bench.engine, Lock.LIVE))
    found = []
    for seed in range(3):
        cast(bench, board, ballots(ITEMS, 20, seed=seed))
        found.append(bench.refit(board.slug).id)
        cast(bench, board, ballots(ITEMS, 2, seed=10 + seed))
        update.serve(board.id)
    with bench.work() as work:
        kept = [bool(work.snapshots.artifacts(each, "sample")) for each in found]
        live = [work.live.find(each) is not None and bool(work.live.sums(each, [""])) for each in found]
        assert all(work.snapshots.all_scores(each) for each in found)
    assert kept == live == [False, True, True]
