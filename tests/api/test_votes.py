"""Every rule that the contract states about single votes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.api.conftest import BoardCaller, ballot, problem

MakeBoard = Callable[..., BoardCaller]


def test_a_vote_comes_back_as_sent(board: BoardCaller) -> None:
    key = str(uuid4())
    answer = board.vote(
        id=key,
        context={"id": "p-1", "features": {"lang": "en", "size": 3}},
        outcome="both_bad",
        voter="u-3",
        voter_type="llm",
        propensity=0.25,
        created_at="2026-11-30T13:00:00+01:00",
    )
    assert answer.status_code == 201
    document = answer.json()
    assert datetime.fromisoformat(document.pop("received_at")) - datetime.now(UTC) < timedelta(minutes=1)
    assert document == {
        "id": key,
        "context": {"id": "p-1"},
        "offer": None,
        "left": "alpha",
        "right": "beta",
        "outcome": "both_bad",
        "kind": "pair",
        "menu": None,
        "ranking": None,
        "voter": "u-3",
        "voter_type": "llm",
        "propensity": 0.25,
        "created_at": "2026-11-30T12:00:00Z",
    }
    assert board.votes()[0]["id"] == key


def test_the_same_vote_again_is_a_duplicate_with_the_same_answer(board: BoardCaller) -> None:
    vote = {"id": str(uuid4()), "context": {"id": "c", "features": {"size": 1}}, "voter": "v", "propensity": 0.5}
    first, second = board.vote(**vote), board.vote(**vote)
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    assert len(board.votes()) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "right"},
        {"left": "gamma"},
        {"voter": "other"},
        {"voter_type": "llm"},
        {"propensity": 0.4},
        {"context": {"id": "other"}},
        {"created_at": "2026-01-01T00:00:00Z"},
    ],
)
def test_the_same_id_with_other_content_is_a_conflict(board: BoardCaller, change: dict[str, Any]) -> None:
    vote = {"id": str(uuid4()), "context": {"id": "c"}, "voter": "v", "propensity": 0.5}
    assert board.vote(**vote).status_code == 201
    problem(board.vote(**{**vote, **change}), 409, "vote-id-taken")
    assert len(board.votes()) == 1


def test_equal_content_in_another_spelling_is_a_duplicate(board: BoardCaller) -> None:
    board("PUT", "/items/alpha", {"aliases": ["a"]})
    vote = {"id": str(uuid4()), "created_at": "2026-11-30T12:00:00Z", "context": {"id": "c", "features": {"size": 1}}}
    assert board.vote(**vote).status_code == 201
    other = {"created_at": "2026-11-30T13:00:00+01:00", "context": {"id": "c", "features": {"size": 1.0, "lang": None}}}
    assert board.vote(**vote, **{"left": "a"}).status_code == 200
    assert board.vote(**{**vote, **other}).status_code == 200


def test_ids_belong_to_their_board(make_board: MakeBoard) -> None:
    key = str(uuid4())
    assert make_board().vote(id=key).status_code == 201
    assert make_board().vote(id=key, outcome="right").status_code == 201


def test_a_second_vote_on_context_and_ordered_pair_is_a_conflict(board: BoardCaller) -> None:
    vote = {"context": {"id": "c"}, "voter": "v"}
    assert board.vote(**vote).status_code == 201
    problem(board.vote(**vote), 409, "second-vote")
    assert board.vote(**vote, left="beta", right="alpha").status_code == 201, "the other order is another pair"
    assert board.vote(context={"id": "d"}, voter="v").status_code == 201
    assert board.vote(context={"id": "c"}, voter="w").status_code == 201


def test_votes_without_voter_or_context_never_collide(board: BoardCaller) -> None:
    for fields in ({"context": {"id": "c"}}, {"voter": "v"}, {}):
        assert [board.vote(**fields).status_code for _ in range(2)] == [201, 201]


def test_a_revote_supersedes_and_keeps_the_first(make_board: MakeBoard) -> None:
    board = make_board(votes={"revotes": True})
    ids = [
        board.vote(context={"id": "c"}, voter="v", outcome=outcome).json()["id"] for outcome in ("left", "right", "tie")
    ]
    assert [vote["id"] for vote in board.votes()] == ids
    rules = board("GET", "/exclusions").json()["exclusions"]
    assert [(rule["vote"], rule["reason"]) for rule in rules] == [(key, "superseded") for key in ids[:2]]
    problem(board("DELETE", f"/exclusions/{rules[0]['id']}"), 409, "superseded")


@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({"outcome": "model_a"}, "unknown-outcome", "outcome"),
        ({"left": "ghost"}, "unknown-item", "left"),
        ({"right": "ghost"}, "unknown-item", "right"),
        ({"right": "alpha"}, "same-item", "right"),
        ({"left": None}, "missing", "left"),
        ({"outcome": None}, "missing", "outcome"),
        ({"kind": "partial"}, "unknown-kind", "kind"),
        ({"assignment": str(uuid4())}, "unknown-assignment", "assignment"),
        ({"menu": ["alpha", "beta"], "ranking": [["beta"]]}, "pair-and-menu", "left"),
        ({"offer": "o"}, "offer-without-context", "offer"),
        ({"context": {"id": "c", "features": {"colour": 1}}}, "undeclared-feature", "context.features.colour"),
        ({"context": {"id": "c", "features": {"lang": 5}}}, "bad-feature", "context.features.lang"),
        ({"context": {"id": "c", "features": {"size": "5"}}}, "bad-feature", "context.features.size"),
        ({"context": {"id": "c", "features": {"size": True}}}, "bad-feature", "context.features.size"),
        ({"context": {"id": ""}}, "bad-field", "context.id"),
        ({"context": {"features": {}}}, "missing-field", "context.id"),
        ({"context": "c"}, "bad-field", "context"),
        ({"propensity": 0}, "bad-field", "propensity"),
        ({"propensity": 1.5}, "bad-field", "propensity"),
        ({"propensity": -0.1}, "bad-field", "propensity"),
        ({"propensity": "0.5"}, "bad-field", "propensity"),
        ({"propensity": True}, "bad-field", "propensity"),
        ({"voter_type": "robot"}, "bad-field", "voter_type"),
        ({"voter": "x" * 201}, "bad-field", "voter"),
        ({"voter": "a\nb"}, "bad-field", "voter"),
        ({"id": "7"}, "bad-field", "id"),
        ({"created_at": "yesterday"}, "bad-field", "created_at"),
        ({"created_at": "2026-11-30T12:00:00"}, "bad-field", "created_at"),
        ({"created_at": 1764504000}, "bad-field", "created_at"),
        ({"created_at": "9999-12-31T23:59:59-23:00"}, "bad-field", "created_at"),
        ({"colour": "red"}, "unknown-field", "colour"),
    ],
)
def test_a_vote_that_breaks_a_rule_is_refused(board: BoardCaller, fields: dict[str, Any], code: str, path: str) -> None:
    document = problem(board.vote(**fields), 422, code)
    assert document["path"] == path
    assert board.votes() == []


def test_two_names_of_one_item_are_one_side(board: BoardCaller) -> None:
    board("PUT", "/items/alpha", {"aliases": ["also-alpha"]})
    problem(board.vote(right="also-alpha"), 422, "same-item")


def test_a_vote_by_alias_is_the_items(board: BoardCaller) -> None:
    board("PUT", "/items/beta", {"aliases": ["b-1", "b-2"]})
    assert board.vote(right="b-2").json()["right"] == "beta"


def test_an_open_board_takes_new_items(make_board: MakeBoard) -> None:
    board = make_board(items=(), open_items=True)
    assert board.vote(left="new/one", right="new two").status_code == 201
    items = board("GET", "/items").json()["items"]
    assert [(item["item"], item["active"]) for item in items] == [("new two", True), ("new/one", True)]


def test_a_refused_vote_leaves_no_item_and_no_context(make_board: MakeBoard) -> None:
    board = make_board(items=(), open_items=True)
    key = str(uuid4())
    board.vote(id=key)
    problem(board.vote(id=key, left="typo", context={"id": "c"}), 409, "vote-id-taken")
    assert len(board("GET", "/items").json()["items"]) == 2
    assert board("POST", "/contexts", {"contexts": [{"id": "c"}]}).json() == {"created": 1, "known": 0}


def test_a_vote_refused_for_its_context_leaves_no_item_while_others_of_its_batch_stay(make_board: MakeBoard) -> None:
    features = [{"name": "lang", "kind": "categorical"}]
    board = make_board(items=(), open_items=True, unit="context", features=features)
    known = {"id": "c", "features": {"lang": "en"}}
    assert board.vote(context=known, voter="v").status_code == 201
    other = {"id": "c", "features": {"lang": "fr"}}
    problem(board.vote(left="ghost", context=other, voter="w"), 409, "context-differs")
    problem(board.vote(context=known, voter="v"), 409, "second-vote")
    fates = board.batch(ballot(left="ghost", context=other), ballot(left="gamma", context=known, voter="x"))
    assert [fate["status"] for fate in fates] == ["rejected", "created"]
    assert sorted(item["item"] for item in board("GET", "/items").json()["items"]) == ["alpha", "beta", "gamma"]


def test_a_known_context_keeps_its_features(board: BoardCaller) -> None:
    known = {"id": "c", "features": {"lang": "en", "size": 1}}
    assert board.vote(context=known).status_code == 201
    assert board.vote(context={"id": "c"}).status_code == 201, "nothing said, nothing contradicted"
    assert board.vote(context=known).status_code == 201
    for features in ({"lang": "fr", "size": 1}, {"lang": "en"}, {}):
        document = problem(board.vote(context={"id": "c", "features": features}), 409, "context-differs")
        assert document["path"] == "context.features"
        assert document["expected"] == {"lang": "en", "size": 1.0}


def test_a_board_of_logged_propensities_needs_one_each(make_board: MakeBoard) -> None:
    board = make_board(propensity="logged")
    document = problem(board.vote(), 422, "propensity-missing")
    assert document["path"] == "propensity"
    assert board.vote(propensity=1).status_code == 201


def test_named_offers_are_kept_on_context_boards(make_board: MakeBoard) -> None:
    board = make_board(unit="context")
    offers = [board.vote(context={"id": "c"}, offer=offer).json()["offer"] for offer in ("o-1", "o-2", "o-1", None)]
    assert offers == ["o-1", "o-2", "o-1", None]
    problem(board.vote(offer="o-1"), 422, "offer-without-context")


def test_a_voter_has_so_many_votes_a_day(make_board: MakeBoard) -> None:
    board = make_board(votes={"per_voter_per_day": 2})
    assert [board.vote(voter="v").status_code for _ in range(2)] == [201, 201]
    answer = board.vote(voter="v")
    problem(answer, 429, "voter-limit")
    assert 0 < int(answer.headers["retry-after"]) <= 86_401
    assert board.vote(voter="w").status_code == 201
    assert board.vote().status_code == 201
    statuses = [result["status"] for result in board.batch(*[ballot(voter="x") for _ in range(3)])]
    assert statuses == ["created", "created", "rejected"]
    twice = [ballot(voter="y", context={"id": name}) for name in ("c", "c", "d")]
    assert [fate["status"] for fate in board.batch(*twice)] == ["created", "rejected", "created"]


def test_votes_come_page_by_page(board: BoardCaller) -> None:
    ids = [board.vote().json()["id"] for _ in range(5)]
    seen, cursor = [], ""
    for _ in range(3):
        page = board("GET", f"/votes?limit=2{cursor}").json()
        seen += [vote["id"] for vote in page["votes"]]
        cursor = f"&cursor={page['next']}"
    assert seen == ids
    assert page["next"] is None
    problem(board("GET", "/votes?cursor=%21%21"), 422, "bad-cursor")
    problem(board("GET", "/votes?limit=0"), 422, "bad-field")
