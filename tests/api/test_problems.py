"""Whatever is sent, the answer is a problem document and never an error of the service."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from tests.api.conftest import BoardCaller, Caller, ballot, problem

JSON = {"Content-Type": "application/json"}
DEEP = "[" * 5000 + "]" * 5000


def send(board: BoardCaller, path: str, body: str | bytes) -> Any:
    return board.call.client.post(board.path + path, content=body, headers={**board.call.headers, **JSON})


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"left": NaN}',
        b'{"propensity": Infinity}',
        b'{"left": "\\ud800"}',
        b'{"left": "\xff"}',
        b"\x00",
        DEEP.encode(),
        b'{"left": "a\\u0000b", "right": "beta", "outcome": "left"}',
        b'{"a\\u0000": 1}',
        b'{"propensity": 1' + b"0" * 400 + b"}",
        b'{"propensity": 123456789012345678901234567890}',
        b'{"propensity": 1e400}',
        b"[]",
        b"7",
        b"null",
        b'"' + b"x" * 1_000_000 + b'"',
    ],
)
def test_a_body_that_is_no_vote(board: BoardCaller, body: bytes) -> None:
    answer = send(board, "/votes", body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert len(answer.content) < 5_000


def test_a_nul_is_named_where_it_is(board: BoardCaller) -> None:
    body = json.dumps({"votes": [ballot(), ballot(context={"id": "c", "features": {"lang": "a\x00b"}})]})
    assert problem(send(board, "/votes/batch", body), 422, "bad-field")["path"] == "votes.1.context.features.lang"
    harmless = json.dumps({"votes": [ballot(voter="\\u0000")]})
    assert send(board, "/votes/batch", harmless).json()["results"][0]["status"] == "created"


@pytest.mark.parametrize("field", ["left", "outcome", "voter", "offer", "assignment", "id", "kind"])
def test_a_string_of_a_megabyte(board: BoardCaller, field: str) -> None:
    answer = board.vote(**{field: "x" * 1_000_000})
    assert answer.status_code == 422
    assert len(answer.content) < 2_000


WILD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.sampled_from(["alpha", "beta", "left", "tie", "c", "2026-11-30T12:00:00Z", "human"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
FIELDS = ("id", "left", "right", "outcome", "context", "voter", "voter_type", "propensity", "created_at", "offer")
EVERY = hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@EVERY
@given(
    rows=st.lists(st.dictionaries(st.sampled_from(FIELDS), WILD, min_size=1), max_size=5), context=WILD, features=WILD
)
def test_wild_votes_are_created_or_refused(board: BoardCaller, rows: list[Any], context: Any, features: Any) -> None:
    rows = [ballot(**row) for row in rows] + [ballot(context={"id": context, "features": features})]
    body = json.dumps({"votes": rows}).encode("utf-8", "surrogatepass")
    answer = send(board, "/votes/batch", body)
    assert answer.status_code in (200, 422), answer.text
    if answer.status_code == 200:
        assert len(answer.json()["results"]) == len(rows)


@EVERY
@given(
    name=st.sampled_from(["outcomes", "features", "segments", "estimands", "acquisition", "votes", "title"]), value=WILD
)
def test_wild_boards_are_changed_or_refused(board: BoardCaller, name: str, value: Any) -> None:
    body = json.dumps({name: value}).encode("utf-8", "surrogatepass")
    answer = board.call.client.patch(board.path, content=body, headers={**board.call.headers, **JSON})
    assert answer.status_code in (200, 409, 422), answer.text


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/boards/%00", 404),
        ("GET", "/v1/boards/a%00b/votes", 404),
        ("GET", "/v1/boards/" + "x" * 5000, 404),
        ("DELETE", "/v1/boards", 405),
        ("PUT", "/healthz", 405),
    ],
)
def test_addresses_that_are_none(call: Caller, method: str, path: str, status: int) -> None:
    answer = call(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert (answer.headers.get("allow") is not None) == (status == 405)


def test_a_nul_in_the_query(board: BoardCaller) -> None:
    problem(board("GET", "/votes?cursor=%00"), 422, "bad-field")


def test_a_body_without_its_type(board: BoardCaller) -> None:
    body = json.dumps(ballot()).encode()
    headers = {**board.call.headers, "Content-Type": "text/plain"}
    answer = board.call.client.post(f"{board.path}/votes", content=body, headers=headers)
    problem(answer, 422, "bad-field")


def test_a_body_too_large(board: BoardCaller) -> None:
    large = b" " * (33 * 1024 * 1024)
    problem(send(board, "/votes", large), 413, "body-too-large")
    chunked = board.call.client.post(board.path + "/votes", content=iter([large]), headers=board.call.headers)
    problem(chunked, 413, "body-too-large")


def test_an_error_of_our_own_is_a_problem_too(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.app.state, "ports", None)  # type: ignore[attr-defined]
    problem(client.get("/v1/boards"), 500, "internal")
