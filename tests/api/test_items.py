"""Items over HTTP: description, aliases, active spans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tests.api.conftest import BoardCaller, problem


def test_an_item_is_described(board: BoardCaller) -> None:
    sent = {
        "title": "Alpha 70B",
        "organisation": "Lab",
        "url": "https://example.org/alpha",
        "licence": "Apache-2.0",
        "aliases": ["alpha-70b", "Lab/alpha"],
        "cost": 2.5,
        "label_cost": 1.0,
        "active": True,
        "active_from": "2026-01-01T00:00:00Z",
    }
    answer = board("PUT", "/items/alpha", sent)
    assert answer.status_code == 200
    expected = {**sent, "item": "alpha", "aliases": ["Lab/alpha", "alpha-70b"]}
    assert answer.json() == expected
    assert board("GET", "/items").json()["items"][0] == expected


def test_what_is_left_out_takes_its_default(board: BoardCaller) -> None:
    board("PUT", "/items/alpha", {"title": "Alpha", "aliases": ["a"], "cost": 3})
    document = board("PUT", "/items/alpha", {}).json()
    assert (document["title"], document["aliases"]) == ("alpha", [])
    assert (document["cost"], document["label_cost"], document["active"]) == (0.0, 0.5, True)
    problem(board.vote(left="a"), 422, "unknown-item")


def test_names_may_hold_slashes_and_need_no_body(board: BoardCaller) -> None:
    answer = board("PUT", "/items/meta-llama/Llama 3")
    assert answer.status_code == 201
    assert answer.json()["item"] == "meta-llama/Llama 3"


def test_a_name_is_of_one_item(board: BoardCaller) -> None:
    board("PUT", "/items/alpha", {"aliases": ["shared"]})
    problem(board("PUT", "/items/beta", {"aliases": ["shared"]}), 409, "name-taken")
    problem(board("PUT", "/items/beta", {"aliases": ["alpha"]}), 409, "name-taken")
    problem(board("PUT", "/items/shared", {}), 409, "name-taken")
    assert board("PUT", "/items/alpha", {"aliases": ["shared", "alpha"]}).status_code == 200


def test_items_retire_and_return(board: BoardCaller, database: Engine) -> None:
    retired = board("PUT", "/items/beta", {"active": False}).json()
    assert (retired["active"], retired["active_from"]) == (False, None)
    assert board("PUT", "/items/beta", {"active": False}).status_code == 200
    assert board("PUT", "/items/beta", {"active": True}).json()["active"] is True
    query = text("""
        SELECT active_to IS NULL, active_to >= active_from FROM item_spans JOIN items ON items.id = item_id
        JOIN boards ON boards.id = board_id WHERE slug = :slug AND name = 'beta' ORDER BY item_spans.id
    """)
    with database.connect() as connection:
        assert connection.execute(query, {"slug": board.slug}).all() == [(False, True), (True, None)]


@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({"active": False, "active_from": "2026-01-01T00:00:00Z"}, "inactive-item", "active_from"),
        ({"cost": -1}, "bad-field", "cost"),
        ({"label_cost": "1"}, "bad-field", "label_cost"),
        ({"url": "javascript:alert(1)"}, "bad-field", "url"),
        ({"aliases": [""]}, "bad-field", "aliases.0"),
        ({"active_from": "soon"}, "bad-field", "active_from"),
        ({"colour": 1}, "unknown-field", "colour"),
    ],
)
def test_a_field_that_does_not_fit_is_named(board: BoardCaller, fields: dict[str, Any], code: str, path: str) -> None:
    assert problem(board("PUT", "/items/delta", fields), 422, code)["path"] == path
    assert len(board("GET", "/items").json()["items"]) == 3


@pytest.mark.parametrize("name", ["x" * 201, "%7F", "a%1Fb"])
def test_a_name_that_does_not_fit_is_refused(board: BoardCaller, name: str) -> None:
    problem(board("PUT", f"/items/{name}", {}), 422, "bad-field")


def test_items_belong_to_their_board(make_board: Callable[..., BoardCaller]) -> None:
    make_board()("PUT", "/items/only-here", {})
    problem(make_board().vote(left="only-here"), 422, "unknown-item")
