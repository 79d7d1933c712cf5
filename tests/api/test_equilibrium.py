"""Who wins where, over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine

from app.main import create_app
from app.settings import Settings
from tests.api.conftest import BoardCaller, problem
from tests.refitting import Bench

Make = Callable[..., BoardCaller]
ITEMS = ("rock", "paper", "scissors")
BEATS = {("paper", "rock"), ("scissors", "paper"), ("rock", "scissors")}
FEATURES = [{"name": "lang", "kind": "categorical"}, {"name": "size", "kind": "numeric"}]
LANGS = ("de", "en")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def better(left: str, right: str, lang: str) -> bool:
    """In English paper wraps rock, and so on; in German rock beats all, and paper scissors."""
    if lang == "en":
        return (left, right) in BEATS
    order = ("rock", "paper", "scissors")
    return order.index(left) < order.index(right)


def votes(langs: tuple[str, ...], rounds: int) -> list[dict[str, Any]]:
    """Every ordered pair equally often, the better item always wins."""
    found = []
    for number in range(rounds):
        lang = langs[number % len(langs)]
        for left, right in permutations(ITEMS, 2):
            features = {"lang": lang, "size": round((number * 0.37) % 1, 3)}
            context = {"id": f"c{number}-{left}-{right}", "features": features}
            outcome = "left" if better(left, right, lang) else "right"
            found.append({"context": context, "left": left, "right": right, "outcome": outcome, "propensity": 1 / 6})
    return found


def cyclic(make_board: Make, bench: Bench, *, langs: tuple[str, ...] = ("en",), **fields: Any) -> BoardCaller:
    board = make_board(items=ITEMS, features=FEATURES, segments=["lang"], **fields)
    results = board.batch(*votes(langs, 40))
    assert {row["status"] for row in results} == {"created"}
    bench.refit(board.slug)
    return board


@pytest.fixture(scope="module")
def known() -> dict[str, BoardCaller]:
    return {}


def solved(board: BoardCaller, *features: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    answer = board("POST", "/equilibrium", {"contexts": [{"features": each} for each in features], **more})
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["equilibria"]
    return found


def test_rock_paper_scissors_is_a_third_each(make_board: Make, bench: Bench) -> None:
    board = cyclic(make_board, bench)
    found = board("GET", "/equilibrium").json()
    assert found["distribution"] == pytest.approx(dict.fromkeys(ITEMS, 1 / 3), abs=0.01)
    assert sorted(found["winners"]) == sorted(ITEMS)
    assert found["exploitability"] == pytest.approx(0.0, abs=0.02)
    assert 0 <= found["gap"] <= 1e-12
    assert found["robust"] == pytest.approx(dict.fromkeys(ITEMS, 1 / 3), abs=0.05)
    assert found["status"] == "ok"
    assert found["settings"] == {
        "lambda": 0.05,
        "regulariser": "l2",
        "aggregator": "uniform",
        "costs": dict.fromkeys(sorted(ITEMS), 0.0),
    }
    paper = next(row for row in found["payoffs"] if (row["first"], row["second"]) == ("paper", "rock"))
    assert paper["payoff"] == pytest.approx(1.0, abs=0.02)
    assert paper["interval"][0] <= paper["payoff"] <= paper["interval"][1]
    assert paper["votes"] == 80
    assert (found["votes"], found["rows"], found["contexts"]) == (240, 240, 240)
    for method in ("solver", "policy"):
        for row in solved(board, {"lang": "en", "size": 0.4}, {}, method=method):
            assert row["distribution"] == pytest.approx(dict.fromkeys(ITEMS, 1 / 3), abs=0.05)


def test_a_condorcet_winner_wins_where_it_is_one(make_board: Make, bench: Bench) -> None:
    board = cyclic(make_board, bench, langs=LANGS)
    german, english = solved(board, {"lang": "de"}, {"lang": "en"})
    assert german["winners"] == ["rock"]
    assert german["distribution"]["rock"] == pytest.approx(1.0)
    assert len(english["winners"]) == 3
    assert german["gap"] <= 1e-12
    assert board("GET", "/equilibrium?segment=lang:de").json()["winners"] == ["rock"]
    assert len(board("GET", "/equilibrium?segment=lang:en").json()["winners"]) == 3
    by_policy = solved(board, {"lang": "de"}, {"lang": "en"}, method="policy")
    assert by_policy[0]["distribution"]["rock"] > by_policy[1]["distribution"]["rock"] + 0.3
    for row in by_policy:
        assert sum(row["distribution"].values()) == pytest.approx(1.0, abs=1e-9)
        assert row["gap"] is None


def test_segments_are_a_matrix_with_distances(make_board: Make, bench: Bench) -> None:
    board = cyclic(make_board, bench, langs=LANGS)
    found = board("GET", "/equilibrium/segments").json()
    assert found["items"] == sorted(ITEMS)
    assert [row["segment"] for row in found["segments"]] == ["lang:de", "lang:en"]
    assert found["overall"]["segment"] is None
    german, english = found["matrix"]
    assert german == pytest.approx([0.0, 1.0, 0.0], abs=1e-9)
    assert english == pytest.approx([1 / 3] * 3, abs=0.01)
    apart = 0.5 * np.abs(np.subtract(german, english)).sum()
    assert found["distances"] == [[0.0, pytest.approx(apart)], [pytest.approx(apart), 0.0]]
    assert found["segments"][0]["distance"] > 0
    assert found["segments"][0]["distribution"] == dict(zip(found["items"], german, strict=True))


def test_costs_never_raise_a_share(make_board: Make, bench: Bench) -> None:
    board = cyclic(make_board, bench)
    shares = [
        solved(board, {"lang": "en"}, costs={"rock": cost})[0]["distribution"]["rock"] for cost in (0.0, 0.2, 0.5, 2.0)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[1] > shares[2]
    before = board("GET", "/equilibrium").json()["distribution"]["rock"]
    assert board("PUT", "/items/rock", {"cost": 0.5}).status_code == 200
    after = board("GET", "/equilibrium").json()
    assert after["distribution"]["rock"] < before
    assert after["settings"]["costs"]["rock"] == 0.5
    assert solved(board, {"lang": "en"})[0]["distribution"]["rock"] == pytest.approx(shares[2])
    costly = pytest.approx(solved(board, {"lang": "en"})[0]["distribution"], abs=0.05)
    assert solved(board, {"lang": "en"}, method="policy")[0]["distribution"] != costly
    bench.refit(board.slug)
    again = board("POST", "/equilibrium", {"contexts": [{"features": {"lang": "en"}}], "method": "policy"}).json()
    assert again["settings"]["costs"]["rock"] == 0.5
    assert again["equilibria"][0]["distribution"] == costly


@pytest.mark.parametrize("budget", [0.1, 0.15, 0.3, 5.0])
def test_a_budget_holds(make_board: Make, bench: Bench, known: dict[str, BoardCaller], budget: float) -> None:
    board = known.setdefault("cyclic", known.get("cyclic") or cyclic(make_board, bench))
    costs = {"rock": 0.1, "paper": 0.5, "scissors": 0.9}
    for row in solved(board, {"lang": "en"}, {}, costs=costs, budget=budget):
        spent = sum(costs[item] * share for item, share in row["distribution"].items())
        assert spent <= budget + 1e-9
        assert sum(row["distribution"].values()) == pytest.approx(1.0, abs=1e-9)
        assert row["gap"] <= 1e-9


BAD: list[tuple[dict[str, Any], str, str | None]] = [
    ({"budget": 0.05, "costs": dict.fromkeys(ITEMS, 0.1)}, "budget-infeasible", "budget"),
    ({"costs": {"lizard": 0.1}}, "unknown-item", "costs.lizard"),
    ({"costs": {"rock": -0.1}}, "bad-field", "costs.rock"),
    ({"costs": {"rock": "1"}}, "bad-field", "costs.rock"),
    ({"costs": [0.1]}, "bad-field", "costs"),
    ({"budget": -1}, "bad-field", "budget"),
    ({"method": "policy", "costs": {"rock": 0.1}}, "costs-with-policy", "costs"),
    ({"method": "policy", "budget": 1}, "budget-with-policy", "budget"),
    ({"method": "guess"}, "bad-field", "method"),
    ({"contexts": [{}, {"features": {"colour": "red"}}]}, "undeclared-feature", "contexts.1.features.colour"),
    ({"contexts": [{"features": {"size": "long"}}]}, "bad-feature", "contexts.0.features.size"),
    ({"contexts": [{"features": []}]}, "bad-field", "contexts.0.features"),
    ({"contexts": [{"id": "p1"}]}, "unknown-field", "contexts.0.id"),
    ({"contexts": [{}] * 1001}, "bad-field", "contexts"),
    ({"contexts": None}, "bad-field", "contexts"),
    ({"prices": {}}, "unknown-field", "prices"),
]


@pytest.mark.parametrize(("sent", "code", "path"), BAD)
def test_what_has_no_answer_is_refused(
    make_board: Make, bench: Bench, known: dict[str, BoardCaller], sent: dict[str, Any], code: str, path: str | None
) -> None:
    board = known.setdefault("cyclic", known.get("cyclic") or cyclic(make_board, bench))
    document = problem(board("POST", "/equilibrium", {"contexts": [{}], **sent}), 422, code)
    assert document["path"] == path


def test_no_number_is_no_cost(make_board: Make) -> None:
    board = make_board(items=ITEMS)
    body = b'{"contexts": [{}], "costs": {"rock": NaN}}'
    headers = {**board.call.headers, "content-type": "application/json"}
    answer = board.call.client.post(f"{board.path}/equilibrium", content=body, headers=headers)
    problem(answer, 422, "bad-json")
    assert problem(board("POST", "/equilibrium", {}), 422, "missing-field")["path"] == "contexts"


def test_unknown_segments_are_missing(make_board: Make, bench: Bench) -> None:
    board = make_board(items=ITEMS, features=FEATURES, segments=["lang"])
    assert problem(board("GET", "/equilibrium?segment=size:1"), 404, "unknown-segment")["path"] == "segment"
    board.batch(*votes(("en",), 10))
    bench.refit(board.slug)
    assert problem(board("GET", "/equilibrium?segment=lang:fr"), 404, "unknown-segment")["path"] == "segment"
    problem(board("GET", "/equilibrium?colour=red"), 422, "unknown-field")


def test_boards_with_nothing_to_say_say_why(make_board: Make, bench: Bench) -> None:
    board = make_board(items=ITEMS, features=FEATURES, segments=["lang"])

    def said(status: str) -> None:
        found = board("GET", "/equilibrium").json()
        assert (found["status"], found["distribution"], found["winners"]) == (status, None, [])
        assert (found["exploitability"], found["gap"], found["robust"], found["payoffs"]) == (None, None, None, [])
        rows = board("GET", "/equilibrium/segments").json()
        assert (rows["status"], rows["segments"], rows["matrix"]) == (status, [], [])
        for method in ("solver", "policy"):
            problem(board("POST", "/equilibrium", {"contexts": [{}], "method": method}), 409, "no-equilibrium")

    said("pending")
    bench.refit(board.slug)
    said("few_votes")
    for item in ITEMS[1:]:
        board("PUT", f"/items/{item}", {"active": False})
    bench.refit(board.slug)
    said("few_votes")


def test_items_that_no_vote_links_do_not_play(make_board: Make, bench: Bench) -> None:
    board = make_board(items=(*ITEMS, "lizard"), features=FEATURES, segments=["lang"])
    board.batch(*votes(("en",), 20))
    bench.refit(board.slug)
    found = board("GET", "/equilibrium").json()
    assert found["status"] == "disconnected"
    assert set(found["distribution"]) == set(ITEMS)
    rows = board("GET", "/equilibrium/segments").json()
    assert rows["matrix"][0][rows["items"].index("lizard")] is None
    assert set(solved(board, {}, costs={"lizard": 0.0})[0]["distribution"]) == set(ITEMS)


@pytest.mark.parametrize(
    "asked", [{"regulariser": "kl"}, {"regularisation": 0}, {"regularisation": 1.0}], ids=["kl", "maximal", "strong"]
)
def test_other_regularisers_are_answered(make_board: Make, bench: Bench, asked: dict[str, Any]) -> None:
    board = cyclic(make_board, bench, equilibrium=asked)
    found = board("GET", "/equilibrium").json()
    assert found["distribution"] == pytest.approx(dict.fromkeys(ITEMS, 1 / 3), abs=0.02)
    assert solved(board, {})[0]["distribution"] == pytest.approx(dict.fromkeys(ITEMS, 1 / 3), abs=0.05)
    if asked != {"regularisation": 1.0}:
        body = {"contexts": [{}], "method": "policy"}
        assert problem(board("POST", "/equilibrium", body), 422, "no-policy")["path"] == "method"
    if "regulariser" in asked:
        body = {"contexts": [{}], "budget": 1}
        assert problem(board("POST", "/equilibrium", body), 422, "budget-with-kl")["path"] == "budget"


def test_kl_needs_a_strength(make_board: Make) -> None:
    board = make_board()
    answer = board("PATCH", "", {"equilibrium": {"regulariser": "kl", "regularisation": 0}})
    assert problem(answer, 422, "kl-without-strength")["path"] == "equilibrium.regularisation"


def test_answers_are_tagged_and_change_with_costs(make_board: Make, bench: Bench) -> None:
    board = cyclic(make_board, bench)
    for path in ("/equilibrium", "/equilibrium?segment=lang:en", "/equilibrium/segments"):
        first = board("GET", path)
        tag = {"if-none-match": first.headers["etag"]}
        assert board("GET", path, headers=tag).status_code == 304
        before = board("PUT", "/items/rock", {"cost": len(path) / 10})
        assert before.status_code == 200
        assert board("GET", path, headers=tag).status_code == 200


def test_another_process_answers_the_same(
    make_board: Make, bench: Bench, settings: Settings, admin: dict[str, str]
) -> None:
    board = cyclic(make_board, bench, langs=LANGS)
    body = {"contexts": [{"features": {"lang": lang, "size": 0.1 * at}} for at in range(9) for lang in LANGS]}
    asked = [("GET", "/equilibrium", None), ("GET", "/equilibrium/segments", None)]
    asked += [("POST", "/equilibrium", {**body, "method": method}) for method in ("solver", "policy")]
    mine = [board(*each).content for each in asked]
    with TestClient(create_app(settings)) as other:
        theirs = [
            other.request(method, board.path + path, json=sent, headers=admin).content for method, path, sent in asked
        ]
    assert mine == theirs


def test_readers_alone_may_ask(make_board: Make, bench: Bench, nobody: Callable[..., Any]) -> None:
    board = cyclic(make_board, bench)
    for method, body in (("GET", None), ("POST", {"contexts": []})):
        assert nobody(method, f"{board.path}/equilibrium", body).status_code == 401
    board("PATCH", "", {"public": True})
    assert nobody("POST", f"{board.path}/equilibrium", {"contexts": []}).json()["equilibria"] == []


def ranked(rounds: int) -> list[dict[str, Any]]:
    """Menus of all three: in English rock, then scissors, then paper … each in turn; in German always rock first."""
    found = []
    for number in range(rounds):
        lang = LANGS[number % 2]
        turn = number // 2 % 3
        order = ("rock", "scissors", "paper")
        own = order[turn:] + order[:turn] if lang == "en" else ("rock", "paper", "scissors")
        context = {"id": f"r{number}", "features": {"lang": lang, "size": round((number * 0.37) % 1, 3)}}
        found.append({"context": context, "menu": list(ITEMS), "ranking": [[item] for item in own]})
    return found


@pytest.mark.parametrize("propensity", ["auto", "logged"])
def test_rankings_have_equilibria_of_their_menus(make_board: Make, bench: Bench, propensity: str) -> None:
    """Condorcet's circle in English: each beats one in two thirds of the contexts, and loses to another."""
    board = make_board(items=ITEMS, features=FEATURES, segments=["lang"], propensity=propensity)
    sent = [vote | {"propensity": 1.0} for vote in ranked(240)]
    assert {row["status"] for row in board.batch(*sent)} == {"created"}
    bench.refit(board.slug)
    found = board("GET", "/equilibrium").json()
    payoffs = {(row["first"], row["second"]): row["payoff"] for row in found["payoffs"]}
    assert payoffs["paper", "rock"] == pytest.approx((1 / 3 - 1) / 2, abs=0.05)
    assert payoffs["rock", "scissors"] == pytest.approx((1 / 3 + 1) / 2, abs=0.05)
    assert payoffs["paper", "scissors"] == pytest.approx((-1 / 3 + 1) / 2, abs=0.05)
    assert {row["votes"] for row in found["payoffs"]} == {240}
    assert found["winners"] == ["rock"]
    german, english = solved(board, {"lang": "de"}, {"lang": "en"})
    assert german["winners"] == ["rock"]
    assert english["distribution"] == pytest.approx(dict.fromkeys(ITEMS, 1 / 3), abs=0.2)
    assert solved(board, {"lang": "de"}, method="policy")[0]["distribution"]["rock"] > 0.9


def test_one_item_has_one_cost(make_board: Make, bench: Bench) -> None:
    board = cyclic(make_board, bench)
    board("PUT", "/items/rock", {"aliases": ["stone"]})
    contexts = [{"features": {}}]
    told = board("POST", "/equilibrium", {"contexts": contexts, "costs": {"rock": 0.5, "stone": 0.0}})
    assert problem(told, 422, "item-twice")["path"] == "costs.stone"
    assert board("POST", "/equilibrium", {"contexts": contexts, "costs": {"stone": 0.5}}).status_code == 200


@pytest.mark.parametrize("features", [[], [{"name": "size", "kind": "numeric"}]])
def test_a_board_whose_features_tell_nothing_is_refitted(make_board: Make, bench: Bench, features: Any) -> None:
    board = make_board(items=ITEMS, features=features)
    plain = [{**vote, "context": {"id": vote["context"]["id"]}} for vote in votes(("en",), 80)]
    if features:
        plain = [{**vote, "context": {**vote["context"], "features": {"size": 3.0}}} for vote in plain]
    board.batch(*plain)
    bench.refit(board.slug)
    found = board("GET", "/equilibrium").json()
    assert found["distribution"] == pytest.approx(dict.fromkeys(ITEMS, 1 / 3), abs=0.02)
    assert solved(board, {})[0]["distribution"] == pytest.approx(dict.fromkeys(ITEMS, 1 / 3), abs=0.02)
