"""Keys: who may do what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, text

from app.domain.keys import fingerprint
from tests.api.conftest import BoardCaller, Caller, ballot, problem

MakeKey = Callable[..., Caller]


@pytest.fixture
def make_key(call: Caller, client: TestClient) -> MakeKey:
    """Make a key and a caller that uses it."""

    def make(*scopes: str, **fields: Any) -> Caller:
        answer = call("POST", "/v1/keys", {"scopes": list(scopes), **fields})
        assert answer.status_code == 201, answer.text
        return Caller(client, {"Authorization": f"Bearer {answer.json()['key']}"})

    return make


def test_a_key_is_shown_once_and_kept_as_a_hash(call: Caller, database: Engine) -> None:
    made = call("POST", "/v1/keys", {"scopes": ["read", "votes"], "name": "site"}).json()
    secret = made.pop("key")
    assert secret.startswith(made["prefix"])
    assert len(secret) > 40
    listed = call("GET", "/v1/keys")
    assert secret not in listed.text
    assert [key for key in listed.json()["keys"] if key["id"] == made["id"]] == [made]
    with database.connect() as connection:
        kept = connection.execute(text("SELECT hash FROM keys WHERE id = :id"), {"id": made["id"]}).scalar_one()
    assert kept == fingerprint(secret)


def test_a_revoked_key_opens_nothing(call: Caller, make_key: MakeKey) -> None:
    reader = make_key("read")
    assert reader("GET", "/v1/boards").status_code == 200
    newest = call("GET", "/v1/keys").json()["keys"][-1]["id"]
    assert call("DELETE", f"/v1/keys/{newest}").status_code == 204
    problem(reader("GET", "/v1/boards"), 401, "unknown-key")
    problem(call("DELETE", f"/v1/keys/{newest}"), 404, "unknown-key")


def test_the_last_use_is_written_down(call: Caller, make_key: MakeKey) -> None:
    make_key("read")("GET", "/v1/boards")
    assert call("GET", "/v1/keys").json()["keys"][-1]["last_used_at"] is not None


ACTIONS: dict[str, list[tuple[str, str, Any]]] = {
    "read": [("GET", "", None), ("GET", "/items", None), ("GET", "/votes", None)],
    "votes": [
        ("POST", "/votes", ballot()),
        ("POST", "/votes/batch", {"votes": []}),
        ("POST", "/contexts", {"contexts": []}),
        ("POST", "/judgements", {"judgements": []}),
    ],
    "admin": [
        ("PATCH", "", {}),
        ("PUT", "/items/alpha", {}),
        ("GET", "/exclusions", None),
        ("POST", "/exclusions", {"voter": "v", "reason": "bot"}),
        ("DELETE", "", None),
    ],
}


@pytest.mark.parametrize("scope", ["read", "votes", "acquire", "admin"])
def test_scopes_open_what_they_name(board: BoardCaller, make_key: MakeKey, scope: str) -> None:
    key = make_key(scope)
    for needed, actions in ACTIONS.items():
        for method, path, body in actions:
            answer = key(method, board.path + path, body)
            if scope in (needed, "admin"):
                assert answer.status_code < 300, (needed, path, answer.text)
            else:
                problem(answer, 403, "scope-missing")


def test_a_bound_key_opens_its_board_only(make_board: Callable[..., BoardCaller], make_key: MakeKey) -> None:
    own, other = make_board(), make_board()
    key = make_key("admin", board=own.slug)
    assert key("POST", f"{own.path}/votes", ballot()).status_code == 201
    problem(key("GET", other.path), 403, "other-board")
    problem(key("GET", "/v1/boards/no-such"), 403, "other-board")
    problem(key("POST", "/v1/boards", {"slug": "mine"}), 403, "other-board")
    problem(key("POST", "/v1/keys", {"scopes": ["admin"]}), 403, "other-board")
    problem(key("POST", "/v1/keys", {"scopes": ["read"], "board": other.slug}), 403, "other-board")
    assert key("POST", "/v1/keys", {"scopes": ["read"], "board": own.slug}).status_code == 201
    assert {listed["board"] for listed in key("GET", "/v1/keys").json()["keys"]} == {own.slug}
    assert [board["slug"] for board in key("GET", "/v1/boards").json()["boards"] if not board["public"]] == [own.slug]


def test_a_bound_key_revokes_keys_of_its_board_only(
    call: Caller, make_board: Callable[..., BoardCaller], make_key: MakeKey
) -> None:
    own = make_board()
    key = make_key("admin", board=own.slug)
    foreign = call("POST", "/v1/keys", {"scopes": ["read"]}).json()["id"]
    problem(key("DELETE", f"/v1/keys/{foreign}"), 403, "other-board")


def test_a_key_without_admin_makes_no_keys(make_key: MakeKey) -> None:
    key = make_key("read", "votes", "acquire")
    problem(key("POST", "/v1/keys", {"scopes": ["admin"]}), 403, "scope-missing")
    problem(key("GET", "/v1/keys"), 403, "scope-missing")
    problem(key("DELETE", "/v1/keys/1"), 403, "scope-missing")


def test_without_a_key_only_public_boards_are_read(make_board: Callable[..., BoardCaller], nobody: Caller) -> None:
    private, public = make_board(), make_board(public=True)
    public.vote(voter="u-3")
    for path in (private.path, "/v1/boards/no-such"):
        answer = nobody("GET", path)
        problem(answer, 401, "key-missing")
        assert answer.headers["www-authenticate"] == "Bearer"
    assert nobody("GET", public.path).status_code == 200
    assert nobody("GET", f"{public.path}/items").status_code == 200
    assert nobody("GET", f"{public.path}/votes").json()["votes"][0]["voter"] is None
    assert public.votes()[0]["voter"] == "u-3"
    problem(nobody("POST", f"{public.path}/votes", ballot()), 401, "key-missing")
    problem(nobody("GET", f"{public.path}/exclusions"), 401, "key-missing")
    slugs = [board["slug"] for board in nobody("GET", "/v1/boards").json()["boards"]]
    assert public.slug in slugs
    assert private.slug not in slugs


@pytest.mark.parametrize("header", ["Bearer nope", "Bearer ", "Basic YTpi", "nope", "Bearer \xe9"])
def test_a_header_that_opens_nothing(client: TestClient, board: BoardCaller, header: str) -> None:
    answer = client.get(board.path, headers={"Authorization": header.encode("latin-1")})
    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("fields", "path"),
    [({"scopes": []}, "scopes"), ({"scopes": ["root"]}, "scopes.0"), ({}, "scopes"), ({"scopes": "admin"}, "scopes")],
)
def test_a_key_needs_scopes_that_exist(call: Caller, fields: dict[str, Any], path: str) -> None:
    answer = call("POST", "/v1/keys", fields)
    assert (answer.status_code, answer.json()["path"]) == (422, path)


def test_a_key_of_an_unknown_board_is_not_made(call: Caller) -> None:
    problem(call("POST", "/v1/keys", {"scopes": ["read"], "board": "no-such"}), 404, "unknown-board")
