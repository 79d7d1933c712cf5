"""Boards by each learner: made over HTTP, refitted, ranked; what their snapshots say of the choice."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import Engine

from app.db.models.snapshots import Snapshot
from app.learners.archive import unpack
from app.services.refit.choosing import AUTO
from app.services.refit.snapshot import MODEL
from tests.api.conftest import BoardCaller
from tests.refitting import FEATURES, Bench, ballots

ITEMS = ("ada", "bell", "curie", "dirac")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def kinds(bench: Bench, snapshot: Snapshot) -> set[str]:
    """Of the models that a snapshot keeps."""
    with bench.work() as work:
        return {unpack(body)[0]["kind"] for body in work.snapshots.artifacts(snapshot.id, MODEL)}


def scores(board: BoardCaller) -> dict[str, float]:
    """Debiased log-odds by item."""
    answer = board("GET", "/rankings?estimand=bt")
    assert answer.status_code == 200, answer.text
    return {row["item"]: row["score"] for row in answer.json()["rankings"]}


@pytest.mark.parametrize("name", ["davidson", "lightgbm", "auto"])
def test_a_board_is_ranked_by_the_learner_it_names(
    make_board: Callable[..., BoardCaller], bench: Bench, name: str
) -> None:
    board = make_board(items=ITEMS, features=FEATURES, learner=name)
    assert board("GET").json()["learner"] == name
    board.batch(*ballots(ITEMS, 900, seed=1, contexts=300))
    snapshot = bench.refit(board.slug)
    said = snapshot.summary["learner"]
    assert said["name"] == name
    assert set(said["candidates"]) == (set(AUTO) if name == "auto" else {name})
    assert said["log_loss"] == said["candidates"][said["chosen"]] == min(said["candidates"].values())
    assert said["log_loss"] < said["base_log_loss"]
    assert kinds(bench, snapshot) == {said["chosen"]}
    found = scores(board)
    assert sorted(found, key=found.__getitem__, reverse=True) == list(ITEMS)


@pytest.mark.parametrize("name", ["lightgbm", "auto"])
@pytest.mark.parametrize("size", [0, 1, 5])
def test_a_handful_of_votes_is_enough_for_an_answer(
    make_board: Callable[..., BoardCaller], bench: Bench, name: str, size: int
) -> None:
    board = make_board(items=ITEMS, features=FEATURES, learner=name)
    board.batch(*ballots(ITEMS, size, seed=2))
    said = bench.refit(board.slug).summary["learner"]
    assert said["chosen"] == ("davidson" if name == "auto" and not size else said["chosen"])
    assert (said["log_loss"] is None) == (said["base_log_loss"] is None) == (size == 0)
    assert board("GET", "/rankings?estimand=borda").status_code == 200
