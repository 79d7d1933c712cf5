"""Exclusions over HTTP."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest

from tests.api.conftest import BoardCaller, problem


def exclude(board: BoardCaller, **fields: Any) -> Any:
    return board("POST", "/exclusions", {"reason": "bot", **fields})


def test_a_vote_a_voter_or_a_filter_is_excluded_and_comes_back(board: BoardCaller) -> None:
    vote = board.vote(voter="v").json()["id"]
    wanted = {"voter_type": "llm", "item": "alpha", "outcome": "tie", "created_from": "2026-01-01T00:00:00Z"}
    rules = [exclude(board, vote=vote), exclude(board, voter="v"), exclude(board, filter=wanted)]
    assert [rule.status_code for rule in rules] == [201] * 3
    documents = [rule.json() for rule in rules]
    assert [(rule["vote"], rule["voter"], rule["filter"]) for rule in documents] == [
        (vote, None, None),
        (None, "v", None),
        (None, None, wanted),
    ]
    assert board("GET", "/exclusions").json() == {"exclusions": documents, "next": None}
    assert board("DELETE", f"/exclusions/{documents[1]['id']}").status_code == 204
    assert board("DELETE", f"/exclusions/{documents[1]['id']}").status_code == 204
    assert board("GET", "/exclusions").json()["exclusions"] == [documents[0], documents[2]]
    assert len(board.votes()) == 1, "votes are never deleted"


def test_a_filter_names_an_item_by_its_own_name(board: BoardCaller) -> None:
    board("PUT", "/items/alpha", {"aliases": ["a"]})
    assert exclude(board, filter={"item": "a"}).json()["filter"] == {"item": "alpha"}


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({}, 422, "one-target"),
        ({"voter": "v", "filter": {"item": "alpha"}}, 422, "one-target"),
        ({"vote": str(uuid4())}, 404, "unknown-vote"),
        ({"vote": "x"}, 422, "bad-field"),
        ({"filter": {}}, 422, "empty-filter"),
        ({"filter": {"colour": 1}}, 422, "unknown-field"),
        ({"filter": {"item": "ghost"}}, 422, "unknown-item"),
        ({"filter": {"outcome": "ghost"}}, 422, "unknown-outcome"),
        ({"voter": "v", "reason": "superseded"}, 422, "reason-taken"),
        ({"voter": "v", "reason": ""}, 422, "bad-field"),
        ({"voter": "v", "reason": None}, 422, "bad-field"),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(
    board: BoardCaller, fields: dict[str, Any], status: int, code: str
) -> None:
    problem(exclude(board, **fields), status, code)
    assert board("GET", "/exclusions").json()["exclusions"] == []


def test_an_unknown_rule_is_missing(board: BoardCaller) -> None:
    problem(board("DELETE", "/exclusions/123456789"), 404, "unknown-exclusion")
    problem(board("DELETE", "/exclusions/x"), 422, "bad-field")
    problem(board("DELETE", f"/exclusions/{2**70}"), 422, "bad-field")
