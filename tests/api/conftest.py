"""A board of its own for each test, and calls with a key."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response
from sqlalchemy import Engine, text

ITEMS = ("alpha", "beta", "gamma")
NUMBERS = count()


class Caller:
    """Sends requests with one key, or none."""

    def __init__(self, client: TestClient, headers: dict[str, str]) -> None:
        self.client = client
        self.headers = headers

    def __call__(self, method: str, path: str, body: Any = None, **options: Any) -> Response:
        headers = {**self.headers, **options.pop("headers", {})}
        return self.client.request(method, path, json=body, headers=headers, **options)


class BoardCaller:
    """Sends requests below one board."""

    def __init__(self, call: Caller, slug: str) -> None:
        self.call = call
        self.slug = slug
        self.path = f"/v1/boards/{slug}"

    def __call__(self, method: str, path: str = "", body: Any = None, **options: Any) -> Response:
        return self.call(method, self.path + path, body, **options)

    def vote(self, **fields: Any) -> Response:
        """POST a vote of alpha against beta, changed by the fields."""
        return self("POST", "/votes", ballot(**fields))

    def batch(self, *ballots: Any) -> list[dict[str, Any]]:
        """POST votes together; their fates."""
        answer = self("POST", "/votes/batch", {"votes": list(ballots)})
        assert answer.status_code == 200, answer.text
        results: list[dict[str, Any]] = answer.json()["results"]
        return results

    def votes(self) -> list[dict[str, Any]]:
        """GET the votes."""
        found: list[dict[str, Any]] = self("GET", "/votes?limit=1000").json()["votes"]
        return found


def ballot(**fields: Any) -> dict[str, Any]:
    """A vote of alpha against beta, changed by the fields; None takes a field out."""
    document = {"left": "alpha", "right": "beta", "outcome": "left", **fields}
    return {name: value for name, value in document.items() if value is not None}


def problem(answer: Response, status: int, code: str) -> dict[str, Any]:
    """The problem document of an answer that is one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    document: dict[str, Any] = answer.json()
    assert document["type"] == f"urn:orthorank:problem:{code}", document
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    return document


@pytest.fixture
def call(client: TestClient, admin: dict[str, str]) -> Caller:
    """Requests with a key that may do everything."""
    return Caller(client, admin)


@pytest.fixture
def nobody(client: TestClient) -> Caller:
    """Requests without a key."""
    return Caller(client, {})


@pytest.fixture
def make_board(call: Caller) -> Callable[..., BoardCaller]:
    """Make a board with three items and the given fields."""

    def make(*, items: tuple[str, ...] = ITEMS, **fields: Any) -> BoardCaller:
        slug = f"board-{next(NUMBERS)}"
        answer = call("POST", "/v1/boards", {"slug": slug, **fields})
        assert answer.status_code == 201, answer.text
        board = BoardCaller(call, slug)
        for item in items:
            assert board("PUT", f"/items/{item}").status_code == 201
        return board

    return make


@pytest.fixture
def board(make_board: Callable[..., BoardCaller]) -> BoardCaller:
    """A board with three items and two features."""
    features = [{"name": "lang", "kind": "categorical"}, {"name": "size", "kind": "numeric"}]
    return make_board(features=features)


@pytest.fixture
def offered(database: Engine) -> Callable[[str], dict[str, bool]]:
    """Which contexts of a board were offered."""
    query = text("SELECT external_id, offered FROM contexts JOIN boards ON boards.id = board_id WHERE slug = :slug")

    def read(slug: str) -> dict[str, bool]:
        with database.connect() as connection:
            return {row[0]: row[1] for row in connection.execute(query, {"slug": slug})}

    return read
