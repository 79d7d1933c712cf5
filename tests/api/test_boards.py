"""Boards over HTTP: defaults, validation, patches, ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.api.conftest import BoardCaller, Caller, ballot, problem

MakeBoard = Callable[..., BoardCaller]

DEFAULTS: dict[str, Any] = {
    "slug": "plain",
    "title": "plain",
    "public": False,
    "open_items": False,
    "unit": "battle",
    "population": "prompts",
    "cluster": "context",
    "outcomes": "arena",
    "features": [],
    "segments": [],
    "propensity": "auto",
    "learner": "davidson",
    "folds": 5,
    "estimands": ["borda", "bt", "rc"],
    "acquisition": {
        "estimand": "bt",
        "objective": "a-optimal",
        "mode": "bernoulli",
        "budget": 1.0,
        "floor": None,
        "exploration": 0.0,
        "lease_seconds": 3600,
        "overlap": 1,
    },
    "equilibrium": {"regularisation": 0.05, "regulariser": "l2", "aggregator": "uniform"},
    "votes": {"revotes": False, "per_voter_per_day": None},
    "refit": {"votes": 500, "seconds": 3600},
}


def test_every_field_but_the_slug_has_a_default(call: Caller) -> None:
    created = call("POST", "/v1/boards", {"slug": "plain"})
    assert created.status_code == 201
    document = created.json()
    assert call("GET", "/v1/boards/plain").json() == document
    assert document in call("GET", "/v1/boards").json()["boards"]
    del document["created_at"], document["updated_at"]
    assert document == DEFAULTS


def test_a_board_comes_back_as_sent(call: Caller) -> None:
    sent = {
        **DEFAULTS,
        "slug": "full",
        "title": "Full board",
        "unit": "context",
        "outcomes": [
            {"name": "better", "first": 1.0, "second": 0.0},
            {"name": "worse", "first": 0.0, "second": 1.0},
            {"name": "skip", "first": 0.0, "second": 0.0},
        ],
        "features": [
            {"name": "lang", "kind": "categorical", "dimensions": None},
            {"name": "prompt", "kind": "text", "dimensions": 8},
            {"name": "embedding", "kind": "vector", "dimensions": 3},
        ],
        "segments": ["lang"],
        "estimands": ["bt", {"name": "walk", "kind": "rc", "damping": 0.15, "temperature": None}],
        "acquisition": {**DEFAULTS["acquisition"], "estimand": "walk", "floor": 0.001, "mode": "single"},
    }
    document = call("POST", "/v1/boards", sent).json()
    del document["created_at"], document["updated_at"]
    assert document == sent


def test_a_slug_is_taken_once_until_its_board_ends(call: Caller) -> None:
    assert call("POST", "/v1/boards", {"slug": "once"}).status_code == 201
    problem(call("POST", "/v1/boards", {"slug": "once"}), 409, "slug-taken")
    assert call("DELETE", "/v1/boards/once").status_code == 204
    problem(call("GET", "/v1/boards/once"), 404, "unknown-board")
    assert all(board["slug"] != "once" for board in call("GET", "/v1/boards").json()["boards"])
    assert call("POST", "/v1/boards", {"slug": "once"}).status_code == 201


@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({"slug": "a b"}, "bad-field", "slug"),
        ({"slug": ""}, "bad-field", "slug"),
        ({"slug": "x" * 101}, "bad-field", "slug"),
        ({"public": "yes"}, "bad-field", "public"),
        ({"unit": "vote"}, "bad-field", "unit"),
        ({"outcomes": "senary"}, "bad-field", "outcomes"),
        ({"outcomes": [{"name": "a", "first": 1, "second": 0}]}, "bad-field", "outcomes"),
        ({"outcomes": [{"name": "a", "first": 1, "second": 0}] * 2}, "outcomes-repeat", "outcomes"),
        (
            {"outcomes": [{"name": "a", "first": 1, "second": 0}, {"name": "b", "first": 0.5, "second": 0.5}]},
            "outcomes-cannot-rank",
            "outcomes",
        ),
        (
            {"outcomes": [{"name": "a", "first": -1, "second": 0}, {"name": "b", "first": 0, "second": 1}]},
            "bad-field",
            "outcomes.0.first",
        ),
        ({"features": [{"name": "a", "kind": "colour"}]}, "bad-field", "features.0.kind"),
        ({"features": [{"name": "a:b", "kind": "text"}]}, "bad-field", "features.0.name"),
        ({"features": [{"name": "a", "kind": "vector"}]}, "dimensions-missing", "features"),
        ({"features": [{"name": "a", "kind": "numeric", "dimensions": 2}]}, "dimensions-unused", "features"),
        ({"features": [{"name": "a", "kind": "text"}] * 2}, "features-repeat", "features"),
        ({"segments": ["lang"]}, "segment-not-categorical", "segments"),
        ({"features": [{"name": "a", "kind": "numeric"}], "segments": ["a"]}, "segment-not-categorical", "segments"),
        ({"features": [{"name": "a", "kind": "categorical"}], "segments": ["a"] * 2}, "segments-repeat", "segments"),
        ({"propensity": "guessed"}, "bad-field", "propensity"),
        ({"folds": 1}, "bad-field", "folds"),
        ({"folds": "5"}, "bad-field", "folds"),
        ({"folds": 2.5}, "bad-field", "folds"),
        ({"estimands": ["elo"]}, "unknown-estimand", "estimands"),
        ({"estimands": ["bt", "bt"]}, "estimands-repeat", "estimands"),
        ({"estimands": [{"name": "bt", "kind": "rc"}]}, "estimand-taken", "estimands"),
        ({"estimands": [{"name": "x", "kind": "bt", "damping": 0.1}]}, "damping-unused", "estimands"),
        ({"estimands": [{"name": "x", "kind": "rc", "temperature": 0.1}]}, "temperature-unused", "estimands"),
        ({"estimands": [{"name": "x", "kind": "elo"}]}, "unknown-estimand", "estimands"),
        ({"estimands": [{"name": "x", "kind": 3}]}, "bad-field", "estimands.0.kind"),
        ({"acquisition": {"estimand": "walk"}}, "unknown-estimand", "acquisition.estimand"),
        ({"acquisition": {"budget": 0}}, "bad-field", "acquisition.budget"),
        ({"acquisition": {"floor": 2}}, "bad-field", "acquisition.floor"),
        ({"acquisition": {"colour": 2}}, "unknown-field", "acquisition.colour"),
        ({"equilibrium": {"regulariser": "l1"}}, "bad-field", "equilibrium.regulariser"),
        ({"votes": {"per_voter_per_day": 0}}, "bad-field", "votes.per_voter_per_day"),
        ({"refit": {"votes": -1}}, "bad-field", "refit.votes"),
        ({"colour": 1}, "unknown-field", "colour"),
    ],
)
def test_a_field_that_does_not_fit_is_named(call: Caller, fields: dict[str, Any], code: str, path: str) -> None:
    document = problem(call("POST", "/v1/boards", {"slug": "bad", **fields}), 422, code)
    assert document["path"] == path
    problem(call("GET", "/v1/boards/bad"), 404, "unknown-board")


def test_every_field_at_fault_is_told(call: Caller) -> None:
    document = problem(call("POST", "/v1/boards", {"folds": 0, "unit": 3}), 422, "bad-field")
    assert {error["path"] for error in document["errors"]} == {"slug", "folds", "unit"}


def test_a_patch_merges(make_board: MakeBoard) -> None:
    board = make_board(acquisition={"budget": 2.0, "overlap": 3}, title="Before")
    changed = board("PATCH", "", {"acquisition": {"budget": 5.0}, "public": True})
    assert changed.status_code == 200
    document = changed.json()
    assert (document["acquisition"]["budget"], document["acquisition"]["overlap"]) == (5.0, 3)
    assert (document["title"], document["public"]) == ("Before", True)
    restored = board("PATCH", "", {"acquisition": None, "title": None}).json()
    assert restored["acquisition"] == DEFAULTS["acquisition"]
    assert restored["title"] == board.slug
    assert board("GET").json() == restored


def test_a_patch_that_does_not_fit_changes_nothing(make_board: MakeBoard) -> None:
    board = make_board()
    before = board("GET").json()
    problem(board("PATCH", "", {"acquisition": {"budget": -1}}), 422, "bad-field")
    problem(board("PATCH", "", {"segments": ["nope"]}), 422, "segment-not-categorical")
    problem(board("PATCH", "", {"slug": "other"}), 422, "slug-fixed")
    problem(board("PATCH", "", [1]), 422, "bad-field")
    assert board("GET").json() == before


def test_unit_and_outcomes_stay_once_there_are_votes(make_board: MakeBoard) -> None:
    board = make_board()
    assert board("PATCH", "", {"unit": "context", "outcomes": "ternary"}).status_code == 200
    board.vote(context={"id": "c"})
    problem(board("PATCH", "", {"unit": "battle"}), 409, "unit-in-use")
    problem(board("PATCH", "", {"outcomes": "binary"}), 409, "outcomes-in-use")
    assert board("PATCH", "", {"outcomes": "ternary", "folds": 10}).status_code == 200


def test_outcomes_stay_once_there_are_judgements_of_them(make_board: MakeBoard) -> None:
    board = make_board()
    board("POST", "/contexts", {"contexts": [{"id": "c"}]})
    said = {"judge": "j", "context": "c", "left": "alpha", "right": "beta", "probabilities": {"both_bad": 1.0}}
    assert board("POST", "/judgements", {"judgements": [said]}).json()["created"] == 1
    problem(board("PATCH", "", {"outcomes": "binary"}), 409, "outcomes-in-use")
    assert board("PATCH", "", {"unit": "context", "outcomes": "arena"}).status_code == 200


def test_declared_features_stay_once_there_are_contexts(make_board: MakeBoard) -> None:
    board = make_board(features=[{"name": "lang", "kind": "categorical"}])
    board.vote(context={"id": "c", "features": {"lang": "en"}})
    problem(board("PATCH", "", {"features": []}), 409, "features-in-use")
    problem(board("PATCH", "", {"features": [{"name": "lang", "kind": "text"}]}), 409, "features-in-use")
    more = [{"name": "lang", "kind": "categorical"}, {"name": "size", "kind": "numeric"}]
    assert board("PATCH", "", {"features": more}).status_code == 200
    assert board.vote(context={"id": "d", "features": {"size": 1}}).status_code == 201


def test_an_ended_board_keeps_its_votes(make_board: MakeBoard, call: Caller) -> None:
    board = make_board()
    board.vote()
    board("DELETE")
    problem(board.vote(), 404, "unknown-board")
    call("POST", "/v1/boards", {"slug": board.slug, "open_items": True})
    assert board.votes() == []
    assert board("POST", "/votes/batch", {"votes": [ballot()]}).json()["results"][0]["status"] == "created"
