"""Judgements between refits: live numbers are those of a recomputation that hears each row's own, in whatever order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log
from typing import Any, Literal

import numpy as np
import pytest
from sqlalchemy import Engine, select

from app.db.models.items import Item
from app.db.models.judgements import Judgement
from app.db.models.snapshots import Snapshot
from app.domain.boards import Board
from app.domain.contexts import ContextDraft
from app.domain.judgements import JudgementDraft
from app.services import contexts, judgements
from app.services.live import run
from app.services.live.reading import basis_of
from app.services.refit.frame import Frame
from app.stats.types import Bools, Floats
from tests.refitting import ITEMS, Bench, ballots, cast, features_of, new_board
from tests.services.test_live import read, recomputed, register, scores, updater

JUDGES = ("gemma", "gpt", "llama")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def judge(bench: Bench, board: Board, drafts: Sequence[JudgementDraft]) -> None:
    with bench.work() as work:
        judgements.record(work, board, drafts)


def said(prompts: Sequence[int], *, seed: int, judges: Sequence[str] = JUDGES) -> list[JudgementDraft]:
    """Each prompt judged by some of the judges on some pairs, in both orders at times."""
    rng, drafts = np.random.default_rng(seed), []
    for prompt in prompts:
        for name in judges:
            for left, right in rng.permutation(len(ITEMS))[: 2 * rng.integers(3)].reshape(-1, 2).tolist():
                sure = {"left": 0.1 + 0.8 * (left < right), "right": 0.9 - 0.8 * (left < right)}
                orders = [(left, right, sure), (right, left, {"tie": 1.0})][: rng.integers(1, 3)]
                drafts += [
                    JudgementDraft(judge=name, context=f"p{prompt}", left=ITEMS[a], right=ITEMS[b], probabilities=c)
                    for a, b, c in orders
                ]
    return drafts


def pool(bench: Bench, board: Board, prompts: Sequence[int]) -> None:
    with bench.work() as work:
        contexts.register(work, board, [ContextDraft(id=f"p{n}", features=features_of(n)) for n in prompts])


def heard_in(bench: Bench, board: Board, snapshot: Snapshot) -> Callable[[Frame, Bools], Floats]:
    """Margins of each row, one judgement at a time: those of the refit in its rows, those of by now in others."""
    with bench.work() as work:
        stored = list(work.session.scalars(select(Judgement).where(Judgement.board_id == board.id)))
        names = {item.id: item.name for item in work.session.scalars(select(Item).where(Item.board_id == board.id))}
    moment = basis_of(snapshot).moment

    def margins(frame: Frame, earlier: Bools) -> Floats:
        found: dict[tuple[int, ...], list[float]] = defaultdict(list)
        for each in stored:
            if each.judge not in JUDGES:
                continue
            sides = [frame.items.index(names[side]) for side in (each.left_id, each.right_id)]
            left, right = (min(max(each.probabilities.get(side, 0.0), 0.02), 0.98) for side in ("left", "right"))
            margin, at = log(left) - log(right), JUDGES.index(each.judge)
            for row in np.flatnonzero(frame.context_id == each.context_id).tolist():
                if each.created_at <= moment or not earlier[row]:
                    found[row, sides[0], sides[1], at].append(margin)
                    found[row, sides[1], sides[0], at].append(-margin)
        size = len(frame.items)
        every = np.full((len(earlier), size, size, len(JUDGES)), np.nan)
        for place, each_margin in found.items():
            every[place] = sum(each_margin) / len(each_margin)
        return every.astype(np.float32)

    return margins


def is_recomputed(bench: Bench, board: Board, snapshot: Snapshot, *, levels: Sequence[str] = ("",)) -> None:
    heard = heard_in(bench, board, snapshot)
    for level in levels:
        for estimand in ("borda", "bt"):
            answer = read(bench, board, estimand=estimand, segment=level or None)
            expected = recomputed(bench, board, snapshot, estimand, level, heard=heard)
            assert answer["live"]["included"]
            assert answer["rows"] == expected.estimate.n_rows
            assert scores(answer) == pytest.approx(expected.estimate.value.tolist(), abs=1e-9)
            errors = expected.estimate.standard_error.tolist()
            if board.config.cluster == "context":
                assert scores(answer, "standard_error") == pytest.approx(errors, abs=1e-9)
            plug_in = read(bench, board, estimand=estimand, estimator="plugin", segment=level or None)
            assert scores(plug_in) == pytest.approx(expected.plug_in.tolist(), abs=1e-9)


def judged_board(bench: Bench, *, seed: int, **fields: Any) -> tuple[Board, Snapshot]:
    """Refitted with judgements of most of its prompts, and of some that nobody voted on yet."""
    board, voters = new_board(bench, **fields), 60 if fields.get("cluster") == "voter" else None
    cast(bench, board, ballots(ITEMS, 260, seed=seed, voters=voters, contexts=120))
    pool(bench, board, range(120, 160))
    judge(bench, board, said([*range(80), *range(120, 130)], seed=seed))
    return board, bench.refit(board.slug)


CASES: list[dict[str, Any]] = [
    {"population": "fixed", "segments": ["lang"]},
    {"population": "fixed", "cluster": "voter"},
    {"unit": "context", "segments": ["lang"]},
    {"unit": "context", "propensity": "estimated", "learner": "lightgbm"},
]


@pytest.mark.parametrize("fields", CASES)
def test_live_scores_hear_what_a_recomputation_hears(bench: Bench, fields: dict[str, Any]) -> None:
    """Judgements before a vote, after it and between two updates, of refitted contexts, by judges never heard of."""
    board, snapshot = judged_board(bench, seed=1, **fields)
    update, rng = updater(bench), np.random.default_rng(2)
    votes, views = ballots(ITEMS, 60, seed=3, voters=60, contexts=160), said(range(60, 160), seed=4)
    steps: list[Callable[[], None]] = [
        *(lambda part=part: cast(bench, board, votes[part::6]) for part in range(6)),
        *(lambda part=part: judge(bench, board, views[part::6]) for part in range(6)),
        *(lambda: update.serve(board.id) for _ in range(4)),
    ]
    if fields.get("unit") == "context":
        steps.append(lambda: register(bench, board, [f"p{n}" for n in range(150, 160)]))
    for at in rng.permutation(len(steps)).tolist():
        steps[at]()
    update.serve(board.id)
    levels = ("", "lang:de") if "segments" in fields else ("",)
    is_recomputed(bench, board, snapshot, levels=levels)
    assert list(read(bench, board)["live"]["reasons"]) == ["judgements"]
    judge(bench, board, said(range(130, 160), seed=5))
    cast(bench, board, ballots(ITEMS, 5, seed=6, contexts=None))
    update.serve(board.id)
    is_recomputed(bench, board, snapshot, levels=levels)
    assert read(bench, board)["votes_pending"] == 0


@pytest.mark.parametrize("unit", ["battle", "context"])
def test_judgements_move_scores_with_the_next_vote(bench: Bench, unit: Literal["battle", "context"]) -> None:
    board, snapshot = judged_board(bench, seed=7, unit=unit, population="fixed")
    cast(bench, board, ballots(ITEMS, 30, seed=8, contexts=160))
    update = updater(bench)
    update.serve(board.id)
    before = read(bench, board)
    assert list(before["live"]["reasons"]) == []
    judge(bench, board, said(range(130, 160), seed=9))
    with bench.work() as work:
        assert board.id not in work.live.lagging()
    assert read(bench, board) == before
    # Another reason to look, no vote: the scores that moved are of a version of their own.
    update.serve(board.id)
    moved = read(bench, board)
    assert scores(moved) != scores(before)
    assert moved["live"]["version"] == before["live"]["version"] + 1
    assert (moved["rows"], moved["votes"]) == (before["rows"], before["votes"])
    is_recomputed(bench, board, snapshot)
    update.serve(board.id)
    assert read(bench, board) == moved


@pytest.mark.parametrize("unit", ["battle", "context"])
def test_what_is_judged_of_refitted_rows_waits_and_is_said(bench: Bench, unit: Literal["battle", "context"]) -> None:
    board, snapshot = judged_board(bench, seed=10, unit=unit, population="fixed")
    cast(bench, board, ballots(ITEMS, 10, seed=11, contexts=None))
    update = updater(bench)
    update.serve(board.id)
    before = read(bench, board)
    judge(bench, board, said(range(80, 120), seed=12))
    update.serve(board.id)
    after = read(bench, board)
    assert (scores(after), list(after["live"]["reasons"])) == (scores(before), ["judgements"])
    cast(bench, board, ballots(ITEMS, 20, seed=13, contexts=120))
    update.serve(board.id)
    assert list(read(bench, board)["live"]["reasons"]) == ["judgements"]
    is_recomputed(bench, board, snapshot)
    bench.refit(board.slug)
    cast(bench, board, ballots(ITEMS, 1, seed=14))
    update.serve(board.id)
    assert list(read(bench, board)["live"]["reasons"]) == []
    # A judge that the refit did not hear.
    judge(bench, board, said(range(130, 135), seed=15, judges=["mistral"]))
    update.serve(board.id)
    assert list(read(bench, board)["live"]["reasons"]) == ["judgements"]


def test_a_flood_of_judgements_is_taken_in_by_bounded_steps(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    board, snapshot = judged_board(bench, seed=16, population="fixed")
    cast(bench, board, ballots(ITEMS, 40, seed=17, contexts=160))
    judge(bench, board, said(range(160), seed=18))
    read_between, sizes = run.Reader._judged_between, []

    def watched(reader: run.Reader, *marks: Any) -> Any:
        found = read_between(reader, *marks)
        sizes.append(found.size)
        return found

    monkeypatch.setattr(run.Reader, "_judged_between", watched)
    monkeypatch.setattr(run, "AT_ONCE", 50)
    updater(bench).serve(board.id)
    assert len(sizes) > 5
    assert max(sizes) <= 50
    is_recomputed(bench, board, snapshot)


def test_a_new_snapshot_starts_where_the_judgements_are(bench: Bench) -> None:
    board, _ = judged_board(bench, seed=19, unit="context")
    update = updater(bench)

    def late(*snapshot: Any) -> None:
        cast(bench, board, ballots(ITEMS, 20, seed=20, contexts=160))
        judge(bench, board, said(range(160), seed=21))
        update.catch_up(*snapshot)

    cast(bench, board, ballots(ITEMS, 1, seed=22))
    job = bench.request(board.slug)
    replace(bench.refitter, catch_up=late).serve(board.id)
    with bench.work() as work:
        snapshot = work.snapshots.newest(board.id)
    assert snapshot is not None
    assert bench.job(job.id).snapshot_id == snapshot.id
    assert read(bench, board)["live"]["votes"] == 20
    is_recomputed(bench, board, snapshot)
