"""Boards on which little or nothing can be known: a refit, statuses, never a 500 and never a NaN."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import permutations
from typing import Any

import pytest
from sqlalchemy import Engine

from tests.api.conftest import BoardCaller
from tests.refitting import FEATURES, Bench, ballots

ITEMS = ("ada", "bell", "curie", "dirac")
Make = Callable[..., BoardCaller]
ESTIMANDS = ("bt", "borda", "rc", "threshold", "robust")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def answers(board: BoardCaller) -> Iterator[dict[str, Any]]:
    """Every ranking of the board: none fails, and none holds what is no number."""
    queries = [f"estimand={e}&pairs={p}" for e in ESTIMANDS for p in ("auto", "all", "observed")]
    queries += [f"estimator=plugin&estimand={e}" for e in ESTIMANDS]
    queries += [f"estimator={e}" for e in ("classical", "restricted", "contextual-bt")]
    windows = ("from=2001-01-01T00:00:00Z", "from=2101-01-01T00:00:00Z")
    paths = [f"/rankings?{query}" for query in [*queries, "scale=elo", *windows]]
    for query in [*paths, *(f"/comparisons?interval=anytime&{each}" for each in windows)]:
        answer = board("GET", query)
        assert answer.status_code == 200, (query, answer.text)
        yield strict(answer.text)
    pairs = board("GET", "/pairs")
    assert pairs.status_code == 200
    strict(pairs.text)


def strict(text: str) -> dict[str, Any]:
    """The document, if every number in it is one."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    document: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return document


def refitted(board: BoardCaller, bench: Bench, *votes: dict[str, Any]) -> dict[str, Any]:
    """The default ranking after these votes; every other one is looked at too."""
    if votes:
        assert {row["status"] for row in board.batch(*votes)} == {"created"}
    bench.refit(board.slug)
    list(answers(board))
    document: dict[str, Any] = board("GET", "/rankings").json()
    return document


def by_item(document: dict[str, Any], field: str) -> dict[str, Any]:
    return {row["item"]: row[field] for row in document["rankings"]}


def test_no_votes_at_all(make_board: Make, bench: Bench) -> None:
    document = refitted(make_board(items=ITEMS), bench)
    assert document["status"] == "few_votes"
    assert set(by_item(document, "score").values()) == {None}


def test_no_vote_that_counts_uses_no_propensities(make_board: Make, bench: Bench) -> None:
    board = make_board(items=ITEMS)
    sent = [vote | {"voter": "v", "propensity": None} for vote in ballots(ITEMS, 20, seed=2)]
    board.batch(*sent)
    assert bench.refit(board.slug).summary["propensity"] == "estimated"
    rule = board("POST", "/exclusions", {"reason": "bot", "voter": "v"}).json()["id"]
    document = refitted(board, bench)
    assert (document["votes"], document["propensity"]) == (0, None)
    assert board("GET", "/equilibrium").json()["propensity"] is None
    board("DELETE", f"/exclusions/{rule}")
    assert bench.refit(board.slug).summary["propensity"] == "estimated"


def test_one_voter_has_no_errors_where_voters_are_clusters(make_board: Make, bench: Bench) -> None:
    board = make_board(items=ITEMS, features=FEATURES, segments=["lang"], cluster="voter")
    votes = [vote | {"voter": "one"} for vote in ballots(ITEMS, 300, seed=3, contexts=100_000)]
    assert refitted(board, bench, *votes)["status"] == "few_votes"
    for query in ("estimand=borda", "estimator=classical", "estimator=restricted", "segment=lang:de"):
        document = board("GET", f"/rankings?{query}").json()
        assert set(by_item(document, "standard_error").values()) == {None}
        assert set(by_item(document, "status").values()) == {document["status"]} == {"few_votes"}
    for path in ("/comparisons", "/top", "/pairs", "/equilibrium", "/rankings?from=2001-01-01T00:00:00Z"):
        assert board("GET", path).json()["status"] == "few_votes"


@pytest.mark.parametrize("items", [(), ("ada",)])
def test_fewer_than_two_items(make_board: Make, bench: Bench, items: tuple[str, ...]) -> None:
    board = make_board(items=items)
    document = refitted(board, bench)
    assert [row["item"] for row in document["rankings"]] == list(items)
    top = board("GET", "/top")
    assert top.status_code == 200, top.text
    assert [row["item"] for row in strict(top.text)["items"]] == list(items)


def test_two_items(make_board: Make, bench: Bench) -> None:
    document = refitted(make_board(items=ITEMS[:2]), bench, *ballots(ITEMS[:2], 100, seed=1))
    assert document["status"] == "ok"
    assert [row["rank"] for row in document["rankings"]] == [1, 2]


def test_three_votes(make_board: Make, bench: Bench) -> None:
    document = refitted(make_board(items=ITEMS[:3]), bench, *ballots(ITEMS[:3], 3, seed=2))
    assert document["status"] in ("few_contexts", "disconnected", "extrapolated")
    assert set(by_item(document, "status").values()) <= {"few_votes", "separated", "disconnected"}


def test_one_vote(make_board: Make, bench: Bench) -> None:
    refitted(make_board(items=ITEMS), bench, *ballots(ITEMS, 1, seed=2))


def test_an_item_without_votes(make_board: Make, bench: Bench) -> None:
    document = refitted(make_board(items=ITEMS), bench, *ballots(ITEMS[:3], 200, seed=3))
    assert document["status"] == "disconnected"
    assert by_item(document, "status")["dirac"] == "disconnected"
    assert by_item(document, "score")["dirac"] is None
    assert by_item(document, "rank")["ada"] == 1


@pytest.mark.parametrize("outcome", ["left", "tie", "both_bad"])
def test_one_outcome_only(make_board: Make, bench: Bench, outcome: str) -> None:
    votes = [vote | {"outcome": outcome} for vote in ballots(ITEMS, 150, seed=4)]
    document = refitted(make_board(items=ITEMS, features=FEATURES), bench, *votes)
    assert len(document["rankings"]) == 4


def test_binary_outcomes_and_one_that_is_dropped(make_board: Make, bench: Bench) -> None:
    outcomes = [{"name": "left", "first": 1, "second": 0}, {"name": "right", "first": 0, "second": 1}]
    dropped = {"name": "skip", "first": 0, "second": 0}
    votes = [
        v | {"outcome": "skip" if v["outcome"] in ("tie", "both_bad") else v["outcome"]}
        for v in ballots(ITEMS, 200, seed=5)
    ]
    document = refitted(make_board(items=ITEMS, outcomes=[*outcomes, dropped]), bench, *votes)
    assert document["rankings"][0]["item"] == "ada"


def test_a_disconnected_graph_ranks_the_larger_group(make_board: Make, bench: Bench) -> None:
    votes = ballots(ITEMS[:2], 60, seed=6) + ballots(ITEMS[2:], 20, seed=7)
    document = refitted(make_board(items=ITEMS, propensity="estimated"), bench, *votes)
    assert document["status"] == "disconnected"
    assert by_item(document, "status") == {
        "ada": "ok",
        "bell": "ok",
        "curie": "disconnected",
        "dirac": "disconnected",
    }
    assert by_item(document, "score")["curie"] is None


def test_an_undefeated_item_is_separated(make_board: Make, bench: Bench) -> None:
    votes = ballots(ITEMS, 300, seed=8)
    for vote in votes:
        if "ada" in (vote["left"], vote["right"]):
            vote["outcome"] = "left" if vote["left"] == "ada" else "right"
    board = make_board(items=ITEMS)
    document = refitted(board, bench, *votes)
    assert by_item(document, "status")["ada"] == "separated"
    assert by_item(document, "rank")["ada"] == 1
    classical = board("GET", "/rankings?estimator=classical").json()
    assert (by_item(classical, "score")["ada"], by_item(classical, "status")["ada"]) == (None, "separated")
    assert by_item(classical, "score")["bell"] is not None


def test_sixty_items_on_a_battle_board(make_board: Make, bench: Bench) -> None:
    items = tuple(f"m{n:02}" for n in range(60))
    board = make_board(items=items)
    document = refitted(board, bench, *ballots(items, 1000, seed=9))
    assert document["status"] in ("ok", "few_votes")
    assert document["pairs"] == "observed"
    everything = board("GET", "/rankings?pairs=all").json()
    assert everything["status"] == "extrapolated"
    assert by_item(document, "rank")["m00"] <= 15


def test_no_features_and_features_that_are_missing(make_board: Make, bench: Bench) -> None:
    votes = ballots(ITEMS, 200, seed=10, contexts=100)
    bare = [{**v, "context": {"id": v["context"]["id"]}} for v in votes]
    kinds = [*FEATURES, {"name": "prompt", "kind": "text"}, {"name": "at", "kind": "vector", "dimensions": 2}]
    assert refitted(make_board(items=ITEMS), bench, *bare)["rankings"][0]["item"] == "ada"
    assert refitted(make_board(items=ITEMS, features=kinds), bench, *votes)["rankings"][0]["item"] == "ada"


@pytest.mark.parametrize("unit", ["battle", "context"])
@pytest.mark.parametrize("propensity", ["logged", "estimated"])
def test_every_vote_excluded(make_board: Make, bench: Bench, unit: str, propensity: str) -> None:
    board = make_board(items=ITEMS, unit=unit, propensity=propensity, features=FEATURES)
    board.batch(*ballots(ITEMS, 20, seed=11, contexts=10, voters=5))
    board("POST", "/exclusions", {"filter": {"voter_type": "human"}, "reason": "bot"})
    document = refitted(board, bench)
    assert document["votes_excluded"] == {"bot": 20}
    assert document["votes"] == 0


def test_one_pair_in_one_order(make_board: Make, bench: Bench) -> None:
    votes = [v for v in ballots(ITEMS[:2], 100, seed=12) if v["left"] == "ada"]
    document = refitted(make_board(items=ITEMS[:2], propensity="estimated"), bench, *votes)
    assert by_item(document, "rank") == {"ada": 1, "bell": 2}


def test_all_pairs_in_one_context_by_one_voter(make_board: Make, bench: Bench) -> None:
    votes = [
        {"left": a, "right": b, "outcome": "left", "voter": "v", "context": {"id": "p"}}
        for a, b in permutations(ITEMS, 2)
    ]
    document = refitted(make_board(items=ITEMS, unit="context", cluster="both"), bench, *votes)
    assert document["status"] != "ok"


@pytest.mark.parametrize("cluster", ["context", "voter"])
def test_one_cluster_has_no_error(make_board: Make, bench: Bench, cluster: str) -> None:
    """What comes from one voter, or from one context, does not tell how much another one would differ."""
    same = {"voter": "v"} if cluster == "voter" else {"context": {"id": "p"}}
    votes = [vote | same for vote in ballots(ITEMS, 60, seed=4)]
    document = refitted(make_board(items=ITEMS, cluster=cluster), bench, *votes)
    assert document["status"] != "ok"
    for row in document["rankings"]:
        assert row["score"] is not None
        assert row["status"] != "ok"
        assert row["standard_error"] is row["interval"] is row["rank_interval"] is row["probability_best"] is None
