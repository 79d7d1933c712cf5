"""Votes between refits on boards so large that their refits average over a draw of the rows."""

from __future__ import annotations

import numpy as np
import pytest
from sqlalchemy import Engine

from app.db.models.snapshots import Snapshot
from app.domain.boards import Board
from app.domain.items import ItemDraft
from app.services import items
from app.services.live import run
from app.stats.debias import thinning
from tests.refitting import ITEMS, Bench, ballots, cast, new_board
from tests.services.test_live import live_ballots, read, register, rows_of, scores, updater
from tests.services.test_live_judges import heard_in, judge, judged_board, said
from tests.services.thinned import Known, parts_of, stretched

DRAWN = 40
DAMPED = {"name": "damped", "kind": "rc", "damping": 0.2}


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture(autouse=True)
def _low_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "LEAST_ROWS", DRAWN)
    monkeypatch.setattr(thinning, "PAIRS", 0)


def agree(bench: Bench, board: Board, snapshot: Snapshot, estimand: str, level: str, *, judged: bool = False) -> None:
    """Live answers say what all rows say, those drawn at the refit for those that were not."""
    rows = rows_of(bench, board, snapshot, level, heard=heard_in(bench, board, snapshot) if judged else None)
    answer = read(bench, board, estimand=estimand, segment=level or None)
    target = rows.target(estimand)
    with bench.work() as work:
        known = Known.of(work, snapshot, rows.stored, estimand, level)
    times, parts = known.of_rows(rows.context_id, rows.earlier, rows.content), parts_of(rows.sample, rows.mu, target)
    value, correction = stretched(known, parts, times, target)
    psi = value + correction
    assert answer["live"]["included"]
    assert answer["rows"] == len(psi)
    assert answer["rows_used"] == DRAWN + ((times > 0) & ~rows.earlier).sum() < len(psi)
    assert scores(answer) == pytest.approx(psi.mean(axis=0).tolist(), abs=1e-9)
    assert scores(answer, "standard_error") == pytest.approx(np.sqrt(psi.var(axis=0) / len(psi)).tolist(), abs=1e-9)
    plug_in = read(bench, board, estimand=estimand, estimator="plugin", segment=level or None)
    assert scores(plug_in) == pytest.approx(value.mean(axis=0).tolist(), abs=1e-9)


def test_live_scores_are_those_of_a_recomputation(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Late votes on rows drawn and on others, votes on one offer again and again, new rows and an item that is new."""
    board = new_board(bench, unit="context", segments=["lang"], estimands=["borda", "bt", "rc", DAMPED])
    cast(bench, board, live_ballots(260, seed=1, contexts=120, offers=True))
    register(bench, board, [f"p{n}" for n in range(100, 130)])
    snapshot = bench.refit(board.slug)
    assert read(bench, board)["rows_used"] == DRAWN
    assert snapshot.summary["refits_only"] is None
    update = updater(bench)
    cast(bench, board, live_ballots(70, seed=2, contexts=150, offers=True))
    monkeypatch.setattr(run, "AT_ONCE", 30)
    update.serve(board.id)
    register(bench, board, [f"p{n}" for n in range(140, 170)])
    with bench.work() as work:
        items.put(work, board, "euler", ItemDraft())
    cast(bench, board, ballots((*ITEMS, "euler"), 50, seed=3, contexts=160))
    cast(bench, board, ballots(ITEMS, 20, seed=4))
    update.serve(board.id)
    for level in ("", "lang:de"):
        for estimand in ("borda", "bt", "rc", "damped"):
            agree(bench, board, snapshot, estimand, level)
    answer = read(bench, board)
    assert (answer["votes"], answer["votes_pending"]) == (260 + 70 + 50 + 20, 0)
    assert "active_set" in answer["live"]["reasons"]
    assert next(row for row in answer["rankings"] if row["item"] == "euler")["status"] == "few_votes"


def test_judges_are_heard_in_new_rows_drawn_and_not_drawn(bench: Bench) -> None:
    board, snapshot = judged_board(bench, seed=1, unit="context", segments=["lang"])
    assert read(bench, board)["rows_used"] == DRAWN
    update = updater(bench)
    for part in range(2):
        cast(bench, board, ballots(ITEMS, 20, seed=3 + part, contexts=160))
        judge(bench, board, said(range(60 + part, 160, 2), seed=5 + part))
        register(bench, board, [f"p{n}" for n in range(150, 160)])
        update.serve(board.id)
    cast(bench, board, ballots(ITEMS, 2, seed=7, contexts=160))
    update.serve(board.id)
    for level in ("", "lang:de"):
        for estimand in ("bt", "rc"):
            agree(bench, board, snapshot, estimand, level, judged=True)
