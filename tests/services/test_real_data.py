"""Real votes: LLMFAO's crowd and MT-Bench's judges; skipped where the files are not at hand."""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sqlalchemy import Engine

from app.db.models.snapshots import Score, Snapshot
from app.domain.boards import DRAFT
from app.domain.judgements import JudgementDraft
from app.domain.parsing import parse
from app.services import boards, judgements, votes
from tests.refitting import Bench

DATA = Path(os.environ.get("ORTHORANK_TEST_DATA", Path(__file__).parents[3] / "shared" / "data"))
WINNERS = {"left": "left", "right": "right", "tie": "tie", "model_a": "left", "model_b": "right"}
Ballots = list[dict[str, Any]]


def read(name: str, row: Callable[[dict[str, str]], dict[str, Any] | None]) -> Ballots:
    """Votes of a file; the test is skipped without it."""
    path = DATA / f"{name}.csv.gz"
    if not path.exists():
        pytest.skip(f"no {path}: set ORTHORANK_TEST_DATA to the folder of the real data")
    with gzip.open(path, "rt", newline="") as lines:
        return [vote for each in csv.DictReader(lines) if (vote := row(each)) is not None]


def llmfao(row: dict[str, str]) -> dict[str, Any] | None:
    if row["source"] != "crowd":
        return None
    sides = {"left": row["model_left"], "right": row["model_right"]}
    return {**sides, "context": {"id": row["prompt_id"]}, "voter": row["worker_id"], "outcome": WINNERS[row["winner"]]}


def mtbench(row: dict[str, str]) -> dict[str, Any] | None:
    if row["source"] != "human":
        return None
    sides = {"left": row["model_a"], "right": row["model_b"]}
    context = {"id": f"{row['question_id']}/{row['turn']}"}
    return {**sides, "context": context, "voter": row["judge_id"], "outcome": WINNERS[row["winner"]]}


def gpt4(row: dict[str, str]) -> dict[str, Any] | None:
    if row["source"] == "human":
        return None
    context = f"{row['question_id']}/{row['turn']}"
    outcome = WINNERS.get(row["winner"], "tie")
    pair = {"left": row["model_a"], "right": row["model_b"], "probabilities": {outcome: 1.0}}
    return {"judge": "gpt4", "context": context, **pair}


def likelihood_fit(sent: Ballots, items: list[str]) -> Any:
    """Log-odds of maximum likelihood, ties as half a win for each, by a general optimiser."""
    wins = np.zeros((len(items), len(items)))
    credit = {"left": (1.0, 0.0), "right": (0.0, 1.0), "tie": (0.5, 0.5)}
    for vote in sent:
        left, right = items.index(vote["left"]), items.index(vote["right"])
        first, second = credit[vote["outcome"]]
        wins[left, right] += first
        wins[right, left] += second

    def negative(r: Any) -> tuple[float, Any]:
        gap = r[:, None] - r
        slope = wins * expit(-gap)
        return float((wins * np.logaddexp(0.0, -gap)).sum()), slope.sum(axis=0) - slope.sum(axis=1)

    start = np.zeros(len(items))
    found = minimize(negative, start, jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 10_000})
    return found.x - found.x.mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "reader", "size", "items", "best"),
    [("llmfao_votes", llmfao, 8931, 59, "GPT 4"), ("mtbench_votes", mtbench, 3355, 6, "gpt-4")],
)
def test_real_votes_rank(
    database: Engine, name: str, reader: Callable[..., Any], size: int, items: int, best: str
) -> None:
    sent, bench = read(name, reader), Bench(database)
    assert len(sent) == size
    snapshot = board_of(bench, name, sent)
    assert (snapshot.summary["votes"], snapshot.summary["propensity"]) == (size, "estimated")
    classical, debiased, plugin = (scores(bench, snapshot, kind) for kind in ("classical", "debiased", "plugin"))
    assert np.array(classical.value) == pytest.approx(likelihood_fit(sent, classical.items), abs=1e-6)
    assert len(classical.items) == items
    assert debiased.items[int(np.argmax(debiased.value))] == best
    assert np.abs(np.array(debiased.value) - plugin.value).max() > 0.01


@pytest.mark.slow
def test_the_judge_of_mtbench_sharpens_its_model(database: Engine) -> None:
    """GPT-4's verdicts lower the out-of-fold log loss of the human votes from .866 to .834, and the errors with it."""
    judged, bench = read("mtbench_votes", gpt4), Bench(database)
    before = board_of(bench, "mtbench_votes", read("mtbench_votes", mtbench), slug="mtbench-judged")
    with bench.work() as work:
        board = work.boards.find("mtbench-judged")
        assert board is not None
        fates = judgements.record(work, board, [JudgementDraft(**each) for each in judged])
    assert [fate.status for fate in fates] == ["created"] * 2400
    after = bench.refit("mtbench-judged")
    assert after.summary["judges"] == [{"name": "gpt4", "judgements": 2400, "contexts": 160}]
    assert after.summary["learner"]["log_loss"] < before.summary["learner"]["log_loss"] - 0.02
    assert mean_error(scores(bench, after, "debiased")) < mean_error(scores(bench, before, "debiased"))


def mean_error(score: Score) -> float:
    """The mean of the scores' standard errors."""
    covariance = np.frombuffer(score.covariance).reshape(len(score.items), -1)
    return float(np.sqrt(covariance.diagonal()).mean())


def board_of(bench: Bench, name: str, sent: Ballots, *, slug: str | None = None) -> Snapshot:
    """A refitted board of these votes."""
    with bench.work() as work:
        slug = slug or name.replace("_", "-")
        board = boards.create(work, parse(DRAFT, {"slug": slug, "outcomes": "ternary", "open_items": True}))
    for start in range(0, len(sent), 5000):
        with bench.work() as work:
            results = votes.record(work, board, votes.read_ballots(sent[start : start + 5000]), now=datetime.now(UTC))
        assert {result.status for result in results} == {"created"}
    return bench.refit(board.slug)


def scores(bench: Bench, snapshot: Snapshot, estimator: str) -> Score:
    """The board's Bradley-Terry scores, on the pairs that `auto` takes."""
    with bench.work() as work:
        found = work.snapshots.scores(snapshot.id, "bt", estimator, "")
    return next((each for each in found if each.pairs == each.details["auto"]), found[0])
