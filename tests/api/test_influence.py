"""Exported influence rows reproduce every debiased score and its standard error."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from app.stats.debias import thinning
from tests.api.conftest import BoardCaller, problem
from tests.refitting import FEATURES, Bench, ballots, features_of

ITEMS = ("ada", "bell", "curie", "dirac")
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def export(board: BoardCaller, query: str) -> Lines:
    """The lines of an influence export."""
    answer = board("GET", f"/votes/export?{query}")
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


def reproduce(lines: Lines) -> tuple[dict[str, float], dict[str, float]]:
    """Scores and standard errors by the two formulas of the documentation."""
    items = list(lines[0]["psi"])
    psi = np.array([[line["psi"][item] for item in items] for line in lines])
    score = psi.mean(axis=0)
    labels = np.array([line["cluster"] for line in lines]).reshape(len(lines), -1)
    signs = [1.0] if labels.shape[1] == 1 else [1.0, 1.0, -1.0]
    square = sum(sign * squares(psi - score, label) for sign, label in zip(signs, labels.T, strict=True))
    return dict(zip(items, score, strict=True)), dict(zip(items, np.sqrt(square) / len(lines), strict=True))


def squares(centred: Any, label: Any) -> Any:
    """Σ over clusters of (Σ of the cluster)²."""
    _, at = np.unique(label, return_inverse=True)
    sums = np.zeros((at.max() + 1, centred.shape[1]))
    np.add.at(sums, at, centred)
    return (sums**2).sum(axis=0)


def agree(board: BoardCaller, lines: Lines, query: str) -> None:
    """The lines give what the ranking says, to 1e-9."""
    score, error = reproduce(lines)
    rows = [row for row in board("GET", f"/rankings?{query}").json()["rankings"] if row["score"] is not None]
    assert len(rows) == len(score)
    for row in rows:
        assert row["score"] == pytest.approx(score[row["item"]], abs=1e-9)
        assert row["standard_error"] == pytest.approx(error[row["item"]], abs=1e-9)


def context_board(make_board: Callable[..., BoardCaller], **fields: Any) -> BoardCaller:
    """A board of 200 offered contexts, of which some get no vote and some several."""
    board = make_board(items=ITEMS, unit="context", features=FEATURES, segments=["lang"], **fields)
    contexts = [{"id": f"p{n}", "features": features_of(n), "offered": True} for n in range(200)]
    assert board("POST", "/contexts", {"contexts": contexts}).status_code in (200, 201)
    board.batch(*ballots(ITEMS, 250, seed=3, contexts=200, voters=25))
    return board


@pytest.mark.parametrize(
    ("cluster", "estimand"),
    [("context", "borda"), ("voter", "bt"), ("both", "rc"), ("both", "threshold"), ("context", "robust")],
)
def test_battle_boards(make_board: Callable[..., BoardCaller], bench: Bench, cluster: str, estimand: str) -> None:
    board = make_board(items=ITEMS, features=FEATURES, cluster=cluster)
    board.batch(*ballots(ITEMS, 200, seed=1, contexts=40, voters=20))
    bench.refit(board.slug)
    lines = export(board, f"influence={estimand}")
    assert len(lines) == 200
    agree(board, lines, f"estimand={estimand}")


@pytest.mark.parametrize(("cluster", "estimand", "lines"), [("both", "bt", 200), ("context", "rc", 90)])
def test_large_boards(
    make_board: Callable[..., BoardCaller],
    bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
    *,
    cluster: str,
    estimand: str,
    lines: int,
) -> None:
    """Where mu of all pairs is averaged over a draw of rows, answers say over how many, and lines give the score."""
    monkeypatch.setattr(thinning, "LEAST_ROWS", 90)
    monkeypatch.setattr(thinning, "PAIRS", 0)
    board = make_board(items=ITEMS, features=FEATURES, cluster=cluster)
    board.batch(*ballots(ITEMS, 200, seed=1, contexts=120, voters=20))
    bench.refit(board.slug)
    written = export(board, f"influence={estimand}")
    assert len(written) == lines
    agree(board, written, f"estimand={estimand}")
    document = board("GET", f"/rankings?estimand={estimand}").json()
    assert (document["rows"], document["rows_used"]) == (200, 90)
    assert board("GET", "/pairs").json()["rows_used"] == 90


@pytest.mark.parametrize(("cluster", "estimand"), [("context", "bt"), ("voter", "rc"), ("both", "bt")])
def test_context_boards(make_board: Callable[..., BoardCaller], bench: Bench, cluster: str, estimand: str) -> None:
    board = context_board(make_board, cluster=cluster)
    bench.refit(board.slug)
    lines = export(board, f"influence={estimand}")
    if cluster == "context":
        assert [len(lines), len({line["context"] for line in lines})] == [200, 200]
        assert any(not line["votes"] for line in lines)
    agree(board, lines, f"estimand={estimand}")


def test_segments_and_both_modes_of_pairs(make_board: Callable[..., BoardCaller], bench: Bench) -> None:
    board = context_board(make_board)
    unseen = [v for v in board.votes() if {v["left"], v["right"]} == {"ada", "dirac"}]
    for vote in unseen:
        board("POST", "/exclusions", {"vote": vote["id"], "reason": "bot"})
    bench.refit(board.slug)
    for query in ("", "pairs=all", "pairs=observed", "segment=lang:de", "segment=lang:en&pairs=all"):
        agree(board, export(board, f"influence=bt&{query}"), f"estimand=bt&{query}")


def test_votes_are_named_and_each_once(make_board: Callable[..., BoardCaller], bench: Bench) -> None:
    board = context_board(make_board)
    bench.refit(board.slug)
    lines = export(board, "influence=borda")
    named = [vote for line in lines for vote in line["votes"]]
    assert sorted(named) == sorted(vote["id"] for vote in board.votes())
    context_of = {vote["id"]: vote["context"]["id"] for vote in board.votes()}
    assert all(context_of[vote] == line["context"] for line in lines for vote in line["votes"])


def test_without_a_snapshot_there_is_nothing_to_export(make_board: Callable[..., BoardCaller]) -> None:
    board = make_board()
    problem(board("GET", "/votes/export?influence=bt"), 409, "no-snapshot")
    problem(board("GET", "/votes/export?influence=elo"), 422, "bad-estimand")
