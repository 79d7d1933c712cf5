"""The balance check rings when the propensities do not describe the draws, and is quiet when they do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from app.services.refit import frame
from tests.api.conftest import BoardCaller
from tests.refitting import Bench, ballots

ITEMS = ("ada", "bell", "curie", "dirac")
Make = Callable[..., BoardCaller]
ALARM = "propensities_inconsistent"


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def status(board: BoardCaller, bench: Bench, *votes: dict[str, Any]) -> str:
    """The board's status after these votes."""
    if votes:
        board.batch(*votes)
    bench.refit(board.slug)
    found: str = board("GET", "/rankings").json()["status"]
    return found


def offered_contexts(size: int, *, seed: int) -> list[dict[str, Any]]:
    """Votes of contexts in each of which every ordered pair is labelled with chance 1/12."""
    rng = np.random.default_rng(seed)
    sent = []
    for number in range(size):
        for left, right in np.argwhere(rng.random((4, 4)) < 1 / 12).tolist():
            if left != right:
                vote = ballots((ITEMS[left], ITEMS[right]), 1, seed=number)[0]
                sent.append(vote | {"context": {"id": f"c{number}"}, "propensity": 1 / 12, "voter": f"v{len(sent)}"})
    return sent


def register(board: BoardCaller, size: int) -> None:
    contexts = [{"id": f"c{number}", "offered": True} for number in range(size)]
    assert board("POST", "/contexts", {"contexts": contexts}).status_code in (200, 201)


def test_true_propensities_are_consistent(make_board: Make, bench: Bench) -> None:
    assert status(make_board(items=ITEMS), bench, *ballots(ITEMS, 600, seed=1)) == "ok"


def test_halved_propensities_are_not(make_board: Make, bench: Bench) -> None:
    halved = [vote | {"propensity": vote["propensity"] / 2} for vote in ballots(ITEMS, 600, seed=1)]
    assert status(make_board(items=ITEMS), bench, *halved) == ALARM


def test_offers_without_votes_must_be_sent(make_board: Make, bench: Bench) -> None:
    sent = offered_contexts(800, seed=2)
    complete, lossy = (make_board(items=ITEMS, unit="context") for _ in range(2))
    register(complete, 800)
    assert status(complete, bench, *sent) == "ok"
    assert status(lossy, bench, *sent) == ALARM


@pytest.mark.parametrize("unit", ["battle", "context"])
@pytest.mark.parametrize("corrected", [True, False])
def test_excluded_votes_have_to_be_corrected_for(
    make_board: Make, bench: Bench, unit: str, corrected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not corrected:
        monkeypatch.setattr(frame, "corrected_for_exclusions", lambda pi, *_, **__: pi)
    board = make_board(items=ITEMS, unit=unit)
    sent = ballots(ITEMS, 900, seed=3) if unit == "battle" else offered_contexts(900, seed=3)
    if unit == "context":
        register(board, 900)
    for number, vote in enumerate(sent):
        vote["voter"] = "bot" if {"ada", "bell"} == {vote["left"], vote["right"]} and number % 5 else f"v{number}"
    board.batch(*sent)
    board("POST", "/exclusions", {"voter": "bot", "reason": "bot"})
    assert status(board, bench) == ("ok" if corrected else ALARM)


def test_votes_that_vanish_without_an_exclusion_are_noticed(make_board: Make, bench: Bench) -> None:
    sent = offered_contexts(900, seed=3)
    left = [v for n, v in enumerate(sent) if {"ada", "bell"} != {v["left"], v["right"]} or n % 5 == 0]
    board = make_board(items=ITEMS, unit="context")
    register(board, 900)
    assert status(board, bench, *left) == ALARM


def test_estimated_propensities_are_consistent_with_themselves(make_board: Make, bench: Bench) -> None:
    uneven = [v for n, v in enumerate(ballots(ITEMS, 900, seed=4)) if v["left"] != "ada" or n % 3 == 0]
    for vote in uneven:
        del vote["propensity"]
    board = make_board(items=ITEMS)
    assert status(board, bench, *uneven) == "ok"
    assert board("GET", "/rankings").json()["propensity"] == "estimated"
