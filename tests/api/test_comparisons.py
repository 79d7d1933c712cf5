"""Comparisons and first places end to end: what they say agrees with the ranking, and bad questions are refused."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from tests.api.conftest import BoardCaller, Caller, problem
from tests.refitting import FEATURES, Bench, ballots

ITEMS = ("ada", "bell", "curie", "dirac")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture(scope="module")
def compared(client: TestClient, admin: dict[str, str], bench: Bench) -> BoardCaller:
    """A refitted board that no test changes: ada before bell before curie before dirac."""
    call = Caller(client, admin)
    call("POST", "/v1/boards", {"slug": "compared", "public": True, "features": FEATURES, "segments": ["lang"]})
    board = BoardCaller(call, "compared")
    for item in ITEMS:
        board("PUT", f"/items/{item}", {})
    board.batch(*ballots(ITEMS, 600, seed=1, contexts=300))
    bench.refit(board.slug)
    return board


def read(board: BoardCaller, path: str) -> dict[str, Any]:
    """GET a document."""
    answer = board("GET", path)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    return document


@pytest.mark.parametrize("query", ["", "estimand=borda", "estimand=rc&interval=anytime", "estimator=classical"])
def test_verdicts_agree_with_rank_intervals(compared: BoardCaller, query: str) -> None:
    ranking = {row["item"]: row for row in read(compared, f"/rankings?{query}")["rankings"]}
    document = read(compared, f"/comparisons?{query}")
    beaten = dict.fromkeys(ITEMS, 0)
    assert [(row["first"], row["second"]) for row in document["comparisons"]] == list(combinations(ITEMS, 2))
    for row in document["comparisons"]:
        first, second = ranking[row["first"]], ranking[row["second"]]
        assert row["difference"] == pytest.approx(first["score"] - second["score"])
        assert row["interval"][0] < row["difference"] < row["interval"][1]
        assert (row["interval"][0] > 0, row["interval"][1] < 0) == (
            row["verdict"] == "better",
            row["verdict"] == "worse",
        )
        beaten[row["second"]] += row["verdict"] == "better"
        beaten[row["first"]] += row["verdict"] == "worse"
    assert {item: 1 + lost for item, lost in beaten.items()} == {
        item: ranking[item]["rank_interval"][0] for item in ITEMS
    }
    assert any(row["verdict"] == "better" for row in document["comparisons"])


def test_a_pair_is_judged_among_all_and_may_be_turned_round(compared: BoardCaller) -> None:
    all_pairs = {(row["first"], row["second"]): row for row in read(compared, "/comparisons")["comparisons"]}
    one = read(compared, "/comparisons?first=ada&second=dirac")["comparisons"]
    assert one == [all_pairs["ada", "dirac"]]
    assert one[0]["verdict"] == "better"
    turned = read(compared, "/comparisons?first=dirac&second=ada")["comparisons"][0]
    assert turned["difference"] == -one[0]["difference"]
    assert turned["interval"] == [-one[0]["interval"][1], -one[0]["interval"][0]]
    assert turned["verdict"] == "worse"


def test_errors_of_differences_are_those_against_an_anchor(compared: BoardCaller) -> None:
    anchored = {row["item"]: row for row in read(compared, "/rankings?anchor=bell")["rankings"]}
    for item in ("ada", "curie"):
        row = read(compared, f"/comparisons?first={item}&second=bell")["comparisons"][0]
        assert row["standard_error"] == pytest.approx(anchored[item]["standard_error"])


def test_anytime_intervals_are_wider(compared: BoardCaller) -> None:
    fixed, watched = (
        read(compared, f"/comparisons?interval={kind}")["comparisons"] for kind in ("simultaneous", "anytime")
    )
    for narrow, wide in zip(fixed, watched, strict=True):
        assert wide["interval"][0] < narrow["interval"][0]
        assert wide["standard_error"] == narrow["standard_error"]


def test_equality_of_unequal_items_is_rejected(compared: BoardCaller) -> None:
    test = read(compared, "/comparisons")["equality"]
    assert test["degrees"] == 3
    assert test["statistic"] > 50
    assert test["p_value"] < 1e-10


def test_the_plug_in_has_differences_and_no_verdict(compared: BoardCaller) -> None:
    document = read(compared, "/comparisons?estimator=plugin")
    assert document["equality"] is None
    assert "no valid interval" in document["note"]
    for row in document["comparisons"]:
        assert row["difference"] is not None
        assert (row["standard_error"], row["interval"], row["verdict"]) == (None, None, None)
        assert row["status"] == "no_interval"


def test_an_item_without_a_score_has_nulls_and_its_status(make_board: Callable[..., BoardCaller], bench: Bench) -> None:
    board = make_board(items=ITEMS)
    board.batch(*ballots(ITEMS[:3], 200, seed=2))
    bench.refit(board.slug)
    row = read(board, "/comparisons?first=ada&second=dirac")["comparisons"][0]
    assert {row[name] for name in ("difference", "standard_error", "interval", "verdict")} == {None}
    assert row["status"] == "disconnected"
    top = read(board, "/top?k=4")
    assert top["items"][-1] == {
        **dict.fromkeys(("rank", "rank_interval", "chance")),
        "item": "dirac",
        "status": "disconnected",
    }
    assert top["possibly"] == list(ITEMS[:3])


@pytest.mark.parametrize(("k", "chance"), [(1, 1), (2, 2), (4, 4)])
def test_first_places_follow_the_rank_intervals(compared: BoardCaller, k: int, chance: int) -> None:
    ranking = {row["item"]: row for row in read(compared, "/rankings")["rankings"]}
    document = read(compared, f"/top?k={k}")
    assert [row["item"] for row in document["items"]] == list(ITEMS)
    for row in document["items"]:
        assert row["rank_interval"] == ranking[row["item"]]["rank_interval"]
        assert (row["item"] in document["surely"]) == (row["rank_interval"][1] <= k)
        assert (row["item"] in document["possibly"]) == (row["rank_interval"][0] <= k)
    assert set(document["surely"]) <= set(document["possibly"])
    assert sum(row["chance"] for row in document["items"]) == pytest.approx(chance)
    assert "ada" in document["surely"]
    if k == 1:
        best = {row["item"]: row["probability_best"] for row in ranking.values()}
        assert {row["item"]: row["chance"] for row in document["items"]} == best


def test_the_plug_in_has_no_sets_of_first_places(compared: BoardCaller) -> None:
    document = read(compared, "/top?k=2&estimator=plugin")
    assert (document["surely"], document["possibly"]) == (None, None)
    assert [row["rank"] for row in document["items"]] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("path", "code", "field"),
    [
        ("/comparisons?first=ada", "bad-second", "second"),
        ("/comparisons?second=ada", "bad-first", "first"),
        ("/comparisons?first=ada&second=ada", "bad-second", "second"),
        ("/comparisons?first=zuse&second=ada", "bad-first", "first"),
        ("/comparisons?first=ada&second=zuse", "bad-second", "second"),
        ("/comparisons?interval=marginal", "bad-interval", "interval"),
        ("/comparisons?level=1", "bad-level", "level"),
        ("/comparisons?estimand=elo", "bad-estimand", "estimand"),
        ("/top?k=0", "bad-k", "k"),
        ("/top?k=-3", "bad-k", "k"),
        ("/top?k=5", "bad-k", "k"),
        ("/top?interval=sidak", "bad-interval", "interval"),
        ("/top?estimator=classical&estimand=rc", "bad-estimator", "estimator"),
    ],
)
def test_what_has_no_answer_is_refused(compared: BoardCaller, path: str, code: str, field: str) -> None:
    assert problem(compared("GET", path), 422, code)["path"] == field


@pytest.mark.parametrize("path", ["/top?k=two", "/top?k=1e99", "/top?scale=elo", "/comparisons?anchor=ada"])
def test_misspelt_questions_are_refused(compared: BoardCaller, path: str) -> None:
    assert compared("GET", path).status_code == 422


@pytest.mark.parametrize("path", ["/comparisons", "/comparisons?first=a&second=b", "/top", "/top?k=9"])
def test_a_board_without_a_snapshot_is_pending(make_board: Callable[..., BoardCaller], path: str) -> None:
    board = make_board(items=ITEMS)
    board.batch(*ballots(ITEMS, 2, seed=1))
    document = read(board, path)
    assert (document["status"], document["snapshot"], document["votes_pending"]) == ("pending", None, 2)
    assert document.get("comparisons", document.get("items")) == []


@pytest.mark.parametrize("path", ["/comparisons", "/top?k=2"])
def test_anybody_reads_public_boards_and_tags_answer_304(compared: BoardCaller, nobody: Caller, path: str) -> None:
    first = nobody("GET", compared.path + path)
    assert first.status_code == 200
    assert first.headers["cache-control"] == "public, no-cache"
    tag = {"If-None-Match": first.headers["etag"]}
    assert nobody("GET", compared.path + path, headers=tag).status_code == 304
    mark = "&" if "?" in path else "?"
    assert nobody("GET", f"{compared.path}{path}{mark}level=0.9", headers=tag).status_code == 200


@pytest.mark.parametrize("path", ["/comparisons", "/top"])
def test_private_boards_need_a_key(make_board: Callable[..., BoardCaller], nobody: Caller, path: str) -> None:
    assert nobody("GET", make_board().path + path).status_code == 401


def test_windows_and_segments_are_compared_too(compared: BoardCaller) -> None:
    everything = read(compared, "/comparisons?from=2000-01-01T00:00:00Z")
    assert everything["comparisons"] == read(compared, "/comparisons")["comparisons"]
    german = read(compared, "/comparisons?segment=lang:de")
    assert german["rows"] < everything["rows"]
    nothing = read(compared, "/top?to=2000-01-01T00:00:00Z&k=2")
    assert (nothing["surely"], {row["chance"] for row in nothing["items"]}) == (None, {None})
    problem(compared("GET", "/top?segment=lang:fr"), 404, "unknown-segment")


def test_three_voters_cannot_tell_whether_four_items_are_equal(
    client: TestClient, admin: dict[str, str], bench: Bench
) -> None:
    board = BoardCaller(Caller(client, admin), "three-voters")
    board.call("POST", "/v1/boards", {"slug": board.slug, "features": FEATURES, "open_items": True, "cluster": "voter"})
    votes = ballots(ITEMS, 300, seed=2, contexts=300)
    board.batch(*({**vote, "voter": f"v{at % 3}"} for at, vote in enumerate(votes)))
    bench.refit(board.slug)
    document = read(board, "/comparisons")
    assert all(row["standard_error"] > 0 for row in document["comparisons"])
    assert document["equality"] == {"statistic": None, "degrees": 2, "p_value": None}
