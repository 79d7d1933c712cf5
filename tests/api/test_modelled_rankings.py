"""Rankings that take a Bradley-Terry model for true, end to end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from app.services.refit import modelled
from tests.api.conftest import BoardCaller, Caller, problem
from tests.refitting import FEATURES, Bench, ballots

ITEMS = ("ada", "bell", "curie", "dirac")
OWN = [{"name": "strength", "kind": "bt"}]


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture(scope="module")
def ranked(client: TestClient, admin: dict[str, str], bench: Bench) -> BoardCaller:
    """A refitted board that no test changes, with Bradley-Terry scores under a second name."""
    call = Caller(client, admin)
    fields = {"slug": "modelled", "features": FEATURES, "segments": ["lang"], "estimands": ["bt", "borda", *OWN]}
    call("POST", "/v1/boards", fields)
    board = BoardCaller(call, "modelled")
    for item in ITEMS:
        board("PUT", f"/items/{item}", {})
    board.batch(*ballots(ITEMS, 600, seed=1, contexts=300))
    bench.refit(board.slug)
    return board


def rankings(board: BoardCaller, query: str) -> dict[str, Any]:
    answer = board("GET", f"/rankings?{query}")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def scores(document: dict[str, Any], field: str = "score") -> dict[str, Any]:
    return {row["item"]: row[field] for row in document["rankings"]}


@pytest.mark.parametrize("estimator", ["restricted", "contextual-bt"])
@pytest.mark.parametrize("more", ["", "&segment=lang:de", "&from=2000-01-01T00:00:00Z"])
def test_items_are_ranked_in_their_order(ranked: BoardCaller, estimator: str, more: str) -> None:
    document = rankings(ranked, f"estimator={estimator}{more}")
    assert [row["item"] for row in document["rankings"]] == list(ITEMS)
    assert (document["estimator"], document["pairs"]) == (estimator, "observed")
    assert document["note"]
    assert sum(scores(document).values()) == pytest.approx(0.0, abs=1e-9)


def test_the_restricted_scores_have_intervals_and_the_contextual_ones_have_none(ranked: BoardCaller) -> None:
    for row in rankings(ranked, "estimator=restricted")["rankings"]:
        assert row["interval"][0] < row["score"] < row["interval"][1]
        assert row["rank_interval"][0] <= row["rank"] <= row["rank_interval"][1]
    for row in rankings(ranked, "estimator=contextual-bt")["rankings"]:
        fields = ("standard_error", "interval", "rank_interval", "probability_best")
        assert [row[name] for name in fields] == [None] * 4
        assert row["rank"] is not None


@pytest.mark.parametrize("estimator", ["restricted", "contextual-bt"])
def test_a_window_of_everything_says_what_the_refit_said(ranked: BoardCaller, estimator: str) -> None:
    stored = rankings(ranked, f"estimator={estimator}")
    window = rankings(ranked, f"estimator={estimator}&from=2000-01-01T00:00:00Z")
    assert scores(window) == pytest.approx(scores(stored), abs=1e-9)
    assert scores(window, "standard_error") == pytest.approx(scores(stored, "standard_error"), abs=1e-9)


@pytest.mark.parametrize("estimator", ["restricted", "contextual-bt"])
def test_they_exist_for_bradley_terry_scores_by_any_name(ranked: BoardCaller, estimator: str) -> None:
    own = rankings(ranked, f"estimator={estimator}&estimand=strength&scale=elo")
    plain = rankings(ranked, f"estimator={estimator}&scale=elo")
    assert scores(own) == scores(plain)
    for estimand in ("borda", "rc", "threshold", "robust"):
        found = problem(ranked("GET", f"/rankings?estimator={estimator}&estimand={estimand}"), 422, "bad-estimator")
        assert found["expected"] == ["bt", "strength"]


@pytest.mark.parametrize("estimator", ["restricted", "contextual-bt"])
def test_votes_that_decide_nothing_leave_scores_open(
    make_board: Callable[..., BoardCaller], bench: Bench, estimator: str
) -> None:
    board = make_board(items=ITEMS, features=FEATURES)
    board.batch(*({**vote, "outcome": "tie"} for vote in ballots(ITEMS, 60, seed=2, contexts=30)))
    bench.refit(board.slug)
    for query in (f"estimator={estimator}", f"estimator={estimator}&from=2000-01-01T00:00:00Z"):
        document = rankings(board, query)
        assert document["status"] == "few_votes"
        assert set(scores(document).values()) == {None}
        assert set(scores(document, "status").values()) == {"few_votes"}
        assert sum(scores(document, "votes").values()) == 120


def test_where_all_rows_cost_too_much_some_speak(
    make_board: Callable[..., BoardCaller], bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = make_board(items=ITEMS, features=FEATURES)
    board.batch(*ballots(ITEMS, 600, seed=3, contexts=300))
    bench.refit(board.slug)
    whole = rankings(board, "estimator=restricted")
    monkeypatch.setattr(modelled, "WORK", 100 * len(ITEMS) ** 3)
    board.batch(*ballots(ITEMS, 1, seed=4, contexts=1))
    bench.refit(board.slug)
    some = rankings(board, "estimator=restricted")
    assert 0.35 * whole["rows"] < some["rows_used"] < 0.6 * whole["rows"]
    wider = np.mean(list(scores(some, "standard_error").values())) / np.mean(
        list(scores(whole, "standard_error").values())
    )
    assert 1.15 < wider < 1.8
