"""Contexts and judgements over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app.domain.fields import DEEPEST
from tests.api.conftest import BoardCaller, problem


def register(board: BoardCaller, *contexts: dict[str, Any]) -> Any:
    return board("POST", "/contexts", {"contexts": list(contexts)})


def stored(database: Engine, slug: str) -> dict[str, Any]:
    query = text("""
        SELECT external_id, features, contexts.text, payload FROM contexts JOIN boards ON boards.id = board_id
        WHERE slug = :slug
    """)
    with database.connect() as connection:
        return {row[0]: tuple(row[1:]) for row in connection.execute(query, {"slug": slug})}


def test_contexts_are_registered_in_the_pool_or_offered(board: BoardCaller, offered: Callable[..., Any]) -> None:
    answer = register(board, {"id": "a", "features": {"lang": "en"}}, {"id": "b", "offered": True}, {"id": "c"})
    assert (answer.status_code, answer.json()) == (201, {"created": 3, "known": 0})
    assert offered(board.slug) == {"a": False, "b": True, "c": False}


def test_registering_again_teaches_but_never_takes_back(
    board: BoardCaller, offered: Callable[..., Any], database: Engine
) -> None:
    register(board, {"id": "a", "features": {"size": 1}}, {"id": "b", "offered": True})
    again = register(
        board, {"id": "a", "text": "hello", "payload": {"deep": [1, None]}, "offered": True}, {"id": "b", "text": "x"}
    )
    assert again.json() == {"created": 0, "known": 2}
    assert offered(board.slug) == {"a": True, "b": True}
    assert stored(database, board.slug)["a"] == ({"size": 1.0}, "hello", {"deep": [1, None]})


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"features": {"size": 2}}, "contexts.1.features"),
        ({"features": {}}, "contexts.1.features"),
        ({"text": "other"}, "contexts.1.text"),
        ({"payload": 0}, "contexts.1.payload"),
    ],
)
def test_a_known_context_is_not_changed(board: BoardCaller, change: dict[str, Any], path: str) -> None:
    register(board, {"id": "a", "features": {"size": 1}, "text": "hello", "payload": 1})
    document = problem(register(board, {"id": "new"}, {"id": "a", **change}), 409, "context-differs")
    assert document["path"] == path
    assert register(board, {"id": "new"}).json() == {"created": 1, "known": 0}, "all or none"


def test_a_large_number_is_known_again(board: BoardCaller) -> None:
    # Kept with all of its digits, as a whole number that is no float.
    time = 1_796_083_546_123_456_789
    context = {"id": "a", "features": {"size": time}, "payload": {"at": [float(time)], "n": time}}
    assert register(board, context).json() == {"created": 1, "known": 0}
    assert register(board, context).json() == {"created": 0, "known": 1}
    for change in ({"features": {"size": time + 1_000}}, {"payload": {"at": [float(time)], "n": time + 1}}):
        problem(register(board, context | change), 409, "context-differs")


@pytest.mark.parametrize(
    ("context", "code", "path"),
    [
        ({"features": {"colour": 1}}, "undeclared-feature", "contexts.0.features.colour"),
        ({"features": {"size": "1"}}, "bad-feature", "contexts.0.features.size"),
        ({"offered": "yes"}, "bad-field", "contexts.0.offered"),
        ({"id": 7}, "bad-field", "contexts.0.id"),
        ({"text": 7}, "bad-field", "contexts.0.text"),
    ],
)
def test_a_context_that_does_not_fit_is_named(
    board: BoardCaller, context: dict[str, Any], code: str, path: str
) -> None:
    assert problem(register(board, {"id": "a", **context}), 422, code)["path"] == path


@pytest.mark.parametrize("path", ["/contexts", "/acquire"])
def test_payloads_are_as_deep_as_answers_can_hold(board: BoardCaller, path: str, database: Engine) -> None:
    def send(name: str, levels: int) -> Any:
        payload: Any = {"deep": 1}
        for _ in range(levels - 1):
            payload = [payload]
        return board("POST", path, {"contexts": [{"id": name, "payload": payload}]})

    assert send("a", DEEPEST).is_success
    assert list(stored(database, board.slug)) == ["a"]
    for levels in (DEEPEST + 1, 255, 500):
        document = problem(send("b", levels), 422, "bad-field")
        assert document["path"] == "contexts.0.payload"
        assert f"at most {DEEPEST} levels" in document["expected"]
    problem(send("a", DEEPEST - 1), 409, "context-differs")


def test_kinds_of_features(make_board: Callable[..., BoardCaller], database: Engine) -> None:
    kinds: dict[str, dict[str, Any]] = {"prompt": {"kind": "text"}, "place": {"kind": "vector", "dimensions": 2}}
    board = make_board(features=[{"name": name, **kind} for name, kind in kinds.items()])
    good = {"prompt": "x" * 100_000, "place": [1, -0.5]}
    assert register(board, {"id": "a", "features": good}).status_code == 201
    assert stored(database, board.slug)["a"][0]["place"] == [1.0, -0.5]
    for bad in ([1], [1, 2, 3], ["1", "2"], "1,2", 1, [1, None]):
        problem(register(board, {"id": "b", "features": {"place": bad}}), 422, "bad-feature")
    problem(register(board, {"id": "b", "features": {"prompt": 1}}), 422, "bad-feature")


def test_one_context_twice_in_a_request(board: BoardCaller) -> None:
    assert register(board, {"id": "a"}, {"id": "a", "text": "x"}).json() == {"created": 1, "known": 0}
    twice = register(board, {"id": "b", "text": "x"}, {"id": "b", "text": "y"})
    assert problem(twice, 409, "context-differs")["path"] == "contexts.1.text"


def judge(board: BoardCaller, **fields: Any) -> Any:
    judgement = {"judge": "j", "context": "c", "left": "alpha", "right": "beta", "probabilities": {"left": 1}, **fields}
    return board("POST", "/judgements", {"judgements": [judgement]})


def test_judgements_are_stored_once(board: BoardCaller) -> None:
    register(board, {"id": "c"})
    assert judge(board).json() == {"created": 1, "known": 0}
    assert judge(board).json() == {"created": 0, "known": 1}
    problem(judge(board, probabilities={"right": 1}), 409, "judgement-differs")
    assert judge(board, left="beta", right="alpha").json() == {"created": 1, "known": 0}
    assert judge(board, judge="k", probabilities={"left": 0.33, "right": 0.33, "tie": 0.33}).status_code == 201
    assert board.votes() == []


@pytest.mark.parametrize(
    ("fields", "code", "path"),
    [
        ({"context": "nowhere"}, "unknown-context", "judgements.0.context"),
        ({"left": "ghost"}, "unknown-item", "judgements.0.left"),
        ({"right": "alpha"}, "same-item", "judgements.0.right"),
        ({"probabilities": {"left": 0.5}}, "not-a-distribution", "judgements.0.probabilities"),
        ({"probabilities": {}}, "not-a-distribution", "judgements.0.probabilities"),
        ({"probabilities": {"better": 1}}, "unknown-outcome", "judgements.0.probabilities.better"),
        ({"probabilities": {"left": 2}}, "bad-field", "judgements.0.probabilities.left"),
        ({"judge": None}, "bad-field", "judgements.0.judge"),
    ],
)
def test_a_judgement_that_does_not_fit_is_named(
    board: BoardCaller, fields: dict[str, Any], code: str, path: str
) -> None:
    register(board, {"id": "c"})
    assert problem(judge(board, **fields), 422, code)["path"] == path
