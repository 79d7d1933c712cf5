"""Estimands that the installation adds: named by boards, served everywhere, and what happens without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine

from app.services.estimands import register
from app.settings import EstimandSettings
from tests.api.conftest import BoardCaller, problem
from tests.api.test_influence import agree, export
from tests.refitting import Bench, ballots

ITEMS = ("ada", "bell", "curie")
OWN = "tests.own_estimands:mean_share, tests.own_estimands:spread"
MakeBoard = Callable[..., BoardCaller]


@pytest.fixture
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register(EstimandSettings(estimands=OWN).registered)
    yield
    register(())


def numbers(board: BoardCaller, query: str) -> dict[str, tuple[Any, ...]]:
    """Score, standard error and interval of each item."""
    rows = board("GET", f"/rankings?{query}").json()["rankings"]
    return {row["item"]: (row["score"], row["standard_error"], *row["interval"]) for row in rows}


@pytest.fixture
def filled(make_board: MakeBoard, bench: Bench) -> BoardCaller:
    """A refitted board with two of its own estimands, one of them twice."""
    named = ["borda", "spread", "mean_share", {"name": "again", "kind": "mean_share"}]
    board = make_board(items=ITEMS, estimands=named)
    board.batch(*ballots(ITEMS, 150, seed=1))
    bench.refit(board.slug)
    return board


def test_they_are_served_like_the_others(filled: BoardCaller) -> None:
    assert filled("GET").json()["estimands"][1] == "spread"
    borda = numbers(filled, "estimand=borda")
    for name in ("mean_share", "again"):
        mine = numbers(filled, f"estimand={name}")
        assert mine.keys() == borda.keys()
        for item in ITEMS:
            assert mine[item] == pytest.approx(borda[item], abs=1e-9)
    window = "from=2020-01-01T00:00:00Z"
    for item, found in numbers(filled, f"estimand=spread&{window}").items():
        assert found == pytest.approx(numbers(filled, "estimand=spread")[item], abs=1e-9)
    agree(filled, export(filled, "influence=spread"), "estimand=spread")


def test_observed_pairs_and_elo_are_refused(filled: BoardCaller) -> None:
    problem(filled("GET", "/rankings?estimand=spread&pairs=observed"), 422, "bad-pairs")
    problem(filled("GET", "/rankings?estimand=spread&scale=elo"), 422, "bad-scale")
    problem(filled("GET", "/rankings?estimand=beaten"), 422, "bad-estimand")
    assert filled("GET", "/rankings?estimand=spread&pairs=all").status_code == 200


def test_a_board_names_registered_estimands_only(filled: BoardCaller) -> None:
    for estimands in (["beaten"], [{"name": "x", "kind": "beaten"}]):
        refused = filled("PATCH", "", {"estimands": estimands})
        body = problem(refused, 422, "unknown-estimand")
        assert (body["path"], body["got"]) == ("estimands", "beaten")
        assert body["expected"][-2:] == ["mean_share", "spread"]
    made = filled.call("POST", "/v1/boards", {"slug": "never", "estimands": ["beaten"]})
    problem(made, 422, "unknown-estimand")
    assert filled("PATCH", "", {"estimands": ["spread"], "acquisition": {"estimand": "spread"}}).status_code == 200
    problem(
        filled("PATCH", "", {"estimands": [{"name": "x", "kind": "spread", "damping": 0.1}]}), 422, "damping-unused"
    )


def test_what_is_stored_outlives_the_registration(filled: BoardCaller, bench: Bench) -> None:
    before = numbers(filled, "estimand=spread")
    register(())
    assert numbers(filled, "estimand=spread") == before
    problem(filled("GET", "/rankings?estimand=spread&from=2020-01-01T00:00:00Z"), 422, "estimand-not-registered")
    problem(filled("GET", "/votes/export?influence=spread"), 422, "estimand-not-registered")
    assert filled("PATCH", "", {"title": "still here"}).status_code == 200
    filled.batch(*ballots(ITEMS, 5, seed=2))
    job = bench.serve(filled.slug)
    assert job.state == "failed"
    assert "'spread' is not registered" in str(job.error)
    assert numbers(filled, "estimand=spread") == before
