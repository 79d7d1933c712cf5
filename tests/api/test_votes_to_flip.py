"""How many votes decide who leads, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.api.conftest import BoardCaller
from tests.refitting import FEATURES, Bench, ballots, features_of

ITEMS = ("ada", "bell", "curie")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def read(board: BoardCaller, query: str = "") -> dict[str, Any]:
    answer = board("GET", f"/rankings?{query}")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


def test_every_live_score_names_its_votes(make_board: Callable[..., BoardCaller], bench: Bench) -> None:
    variant = {"name": "pagerank", "kind": "rc", "damping": 0.15}
    board = make_board(items=ITEMS, features=FEATURES, segments=["lang"], estimands=["bt", variant])
    board.batch(*ballots(ITEMS, 300, seed=1, contexts=150))
    bench.refit(board.slug)
    for estimand in ("borda", "bt", "rc", "pagerank"):
        document = read(board, f"estimand={estimand}")
        flip = document["votes_to_flip"]
        assert flip["leader"] == document["rankings"][0]["item"]
        assert flip["challenger"] in ITEMS
        assert flip["challenger"] != flip["leader"]
        assert 0 < flip["votes"] < 300
        assert flip["share"] == pytest.approx(flip["votes"] / 300)
    for other in ("estimand=threshold", "estimator=plugin", "segment=lang:de", "from=2000-01-01T00:00:00Z"):
        assert read(board, other)["votes_to_flip"] is None


def test_the_influence_export_gives_the_same_number(make_board: Callable[..., BoardCaller], bench: Bench) -> None:
    board = make_board(items=ITEMS, features=FEATURES)
    board.batch(*ballots(ITEMS, 200, seed=3, contexts=150))
    bench.refit(board.slug)
    flip = read(board)["votes_to_flip"]
    lines = [json.loads(line)["psi"] for line in board("GET", "/votes/export?influence=bt").text.splitlines()]
    counts = {}
    for rival in set(ITEMS) - {flip["leader"]}:
        gain = np.sort([line[flip["leader"]] - line[rival] for line in lines])[::-1]
        counts[rival] = int(np.argmax(gain.sum() - np.cumsum(gain) < 0)) + 1
    assert flip["votes"] == min(counts.values()) == counts[flip["challenger"]]


def test_on_boards_of_contexts_the_correction_goes_and_the_row_stays(
    make_board: Callable[..., BoardCaller], bench: Bench
) -> None:
    board = make_board(items=ITEMS, unit="context", features=FEATURES, cluster="voter")
    contexts = [{"id": f"p{n}", "features": features_of(n), "offered": True} for n in range(150)]
    board("POST", "/contexts", {"contexts": contexts})
    board.batch(*ballots(ITEMS, 200, seed=3, contexts=150, voters=20))
    bench.refit(board.slug)
    flip = read(board)["votes_to_flip"]
    assert flip["leader"] == read(board)["rankings"][0]["item"]
    assert flip["share"] == pytest.approx(flip["votes"] / 200)


def test_nobody_leads_a_board_without_votes(make_board: Callable[..., BoardCaller], bench: Bench) -> None:
    board = make_board(items=ITEMS)
    assert read(board)["votes_to_flip"] is None
    bench.refit(board.slug)
    assert read(board)["votes_to_flip"] is None
