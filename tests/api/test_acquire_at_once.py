"""Requests for one context: one statement where that is enough, the long way where it is not, and never half of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event, text

from app.main import create_app
from app.settings import LimitSettings, Settings
from tests.api.conftest import BoardCaller, Caller, problem
from tests.api.test_acquire import FEATURES, ITEMS, ask

JSON = {"Content-Type": "application/json"}
Make = Callable[..., BoardCaller]
COUNTS = text("""
SELECT (SELECT count(*) FROM contexts WHERE board_id = boards.id),
       (SELECT count(*) FROM offers WHERE board_id = boards.id),
       (SELECT count(*) FROM assignments WHERE board_id = boards.id)
FROM boards WHERE slug = :slug
""")
OTHERS = text("""
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE pid <> pg_backend_pid() AND datname = current_database()
""")


@pytest.fixture
def pool(make_board: Make) -> BoardCaller:
    return make_board(items=ITEMS, unit="context", features=FEATURES, acquisition={"mode": "one", "budget": 1.0})


@contextmanager
def statements() -> Iterator[list[str]]:
    """What is sent to the database meanwhile, by any connection."""
    sent: list[str] = []

    def note(*arguments: Any) -> None:
        sent.append(arguments[2])

    def execute(self: psycopg.Connection[Any], query: bytes, *values: Any, **options: Any) -> Any:
        sent.append(query.decode())
        return plain(self, query, *values, **options)

    plain: Any = psycopg.Connection.execute
    event.listen(Engine, "before_cursor_execute", note)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(psycopg.Connection, "execute", execute)
        yield sent
    event.remove(Engine, "before_cursor_execute", note)


def stored(database: Engine, board: BoardCaller) -> tuple[int, ...]:
    """Contexts, offers and assignments of a board."""
    with database.connect() as connection:
        return tuple(connection.execute(COUNTS, {"slug": board.slug}).one())


def one(name: str, size: float | None = 1.0) -> dict[str, Any]:
    return {"contexts": [{"id": name, **({} if size is None else {"features": {"size": size}})}]}


def test_one_context_takes_one_statement(pool: BoardCaller, database: Engine) -> None:
    ask(pool, **one("c0"))
    with statements() as sent:
        drawn = [ask(pool, **one("c1"), annotator="anna"), ask(pool, **one("c0"))]
    mine = [statement for statement in sent if "boards" in statement or "offers" in statement]
    assert len(mine) == 2
    assert [len(rows) for rows in drawn] == [1, 1]
    assert stored(database, pool) == (2, 3, 3)


def test_what_is_drawn_at_once_can_be_answered(pool: BoardCaller) -> None:
    (drawn,) = ask(pool, contexts=[{"id": "c0", "text": "a text", "payload": {"of": [1]}}], annotator="anna")
    assert drawn["payload"] == {"of": [1]}
    vote = pool("POST", "/votes", {"assignment": drawn["id"], "outcome": "left"}).json()
    assert (vote["context"], vote["left"], vote["voter"]) == ({"id": "c0"}, drawn["left"], "anna")
    assert vote["propensity"] == drawn["propensity"] == pytest.approx(1 / 12)


def test_a_known_context_keeps_what_is_known_of_it(pool: BoardCaller, database: Engine) -> None:
    ask(pool, **one("c0"))
    problem(pool("POST", "/acquire", one("c0", 2.0)), 409, "context-differs")
    assert stored(database, pool) == (1, 1, 1)
    assert len(ask(pool, **one("c0", None))) == 1
    assert len(ask(pool, contexts=[{"id": "c0", "text": "learned"}])) == 1
    assert stored(database, pool) == (1, 3, 3)
    problem(pool("POST", "/acquire", {"contexts": [{"id": "c0", "text": "another"}]}), 409, "context-differs")


def test_a_context_of_the_pool_that_is_sent_is_offered(pool: BoardCaller, database: Engine) -> None:
    pool("POST", "/contexts", {"contexts": [{"id": "c0", "features": {"size": 1.0}}]})
    assert len(ask(pool, **one("c0"))) == 1
    assert ask(pool, count=1) == []
    assert stored(database, pool) == (1, 1, 1)


def test_nobody_gets_a_pair_twice(pool: BoardCaller) -> None:
    drawn = [(each["left"], each["right"]) for _ in range(40) for each in ask(pool, **one("c0"), annotator="anna")]
    assert 1 < len(drawn) == len(set(drawn)) <= 12


def test_what_is_remembered_holds_no_longer_than_it_is_true(call: Caller, pool: BoardCaller, database: Engine) -> None:
    made = call("POST", "/v1/keys", {"scopes": ["acquire"]}).json()
    tool = BoardCaller(Caller(call.client, {"Authorization": f"Bearer {made['key']}"}), pool.slug)

    def drawn(name: str) -> set[str]:
        return {each[side] for _ in range(30) for each in ask(tool, **one(name)) for side in ("left", "right")}

    assert drawn("c0") == set(ITEMS)
    pool("PUT", f"/items/{ITEMS[0]}", {"active": False})
    assert drawn("c1") == set(ITEMS[1:])
    pool("PUT", f"/items/{ITEMS[1]}", {"active": False})
    pool("PUT", "/items/newest", {})
    assert drawn("c2") == {*ITEMS[2:], "newest"}
    pool("PATCH", "", {"acquisition": {"lease_seconds": 1}})
    before = stored(database, pool)
    (lease,) = ask(tool, **one("c3"))
    assert (datetime.fromisoformat(lease["expires_at"]) - datetime.now(UTC)).total_seconds() <= 1
    assert stored(database, pool) == tuple(count + 1 for count in before)
    call("DELETE", f"/v1/keys/{made['id']}")
    problem(tool("POST", "/acquire", one("c4")), 401, "unknown-key")
    assert len(ask(pool, **one("c4"))) == 1
    pool("DELETE")
    problem(pool("POST", "/acquire", one("c5")), 404, "unknown-board")
    assert stored(database, pool) == tuple(count + 2 for count in before)


def test_costs_that_change_are_those_of_the_next_draw(pool: BoardCaller) -> None:
    ask(pool, **one("c0"))
    for item in ITEMS:
        pool("PUT", f"/items/{item}", {"label_cost": 2.0})
    assert pool("POST", "/acquire", one("c1")).json()["policy"]["expected_cost"] == pytest.approx(4.0)


BODIES: dict[str, Any] = {
    "unknown feature": {"contexts": [{"id": "c", "features": {"colour": 1}}]},
    "bad feature": {"contexts": [{"id": "c", "features": {"size": "large"}}]},
    "count with contexts": {"contexts": [{"id": "c"}], "count": 2},
    "unknown mode": {"contexts": [{"id": "c"}], "mode": "two"},
    "no id": {"contexts": [{}]},
    "nothing": None,
    "list": [],
    "two contexts": {"contexts": [{"id": "c"}, {"id": "c"}]},
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES.keys())
@pytest.mark.parametrize("key", ["good", "unknown", "none"])
def test_refusals_are_those_of_the_framework(pool: BoardCaller, body: Any, key: str) -> None:
    ask(pool, **one("c0"))
    headers = {"good": pool.call.headers, "unknown": {"Authorization": "Bearer or_x"}, "none": {}}[key]
    caller = BoardCaller(Caller(pool.call.client, headers), pool.slug)
    door, route = (caller("POST", path, body) for path in ("/acquire", "/acquire?x=1"))
    assert door.status_code >= 401
    assert (door.status_code, door.content) == (route.status_code, route.content)
    assert door.headers["content-type"] == "application/problem+json"


def test_a_key_of_another_kind_or_board_is_refused(call: Caller, pool: BoardCaller) -> None:
    for draft, code in (({"scopes": ["votes"]}, "scope-missing"), ({"scopes": ["acquire"]}, None)):
        made = call("POST", "/v1/keys", draft).json()
        tool = BoardCaller(Caller(call.client, {"Authorization": f"Bearer {made['key']}"}), pool.slug)
        for _ in range(2):
            answer = tool("POST", "/acquire", one("c0"))
            assert answer.status_code == 200 if code is None else problem(answer, 403, code)
        missing = BoardCaller(tool.call, "nowhere")("POST", "/acquire", one("c0"))
        problem(missing, 404 if code is None else 403, code or "unknown-board")


def test_what_is_no_json_and_a_request_of_a_name(pool: BoardCaller) -> None:
    answer = pool.call.client.post(f"{pool.path}/acquire", content=b"{", headers={**pool.call.headers, **JSON})
    problem(answer, 422, "bad-json")
    drawn = pool("POST", "/acquire", one("c0"), headers={"X-Request-Id": "mine"})
    assert (drawn.status_code, drawn.headers["x-request-id"]) == (200, "mine")


def test_more_than_a_minutes_worth_is_refused(settings: Settings, pool: BoardCaller) -> None:
    with TestClient(create_app(replace(settings, limits=LimitSettings(rate_limit=5)))) as client:
        tool = BoardCaller(Caller(client, pool.call.headers), pool.slug)
        assert tool("POST", "/acquire", one("c0")).status_code == 200
        began = time.monotonic()
        while tool("POST", "/acquire", one("c0")).status_code == 200:
            assert time.monotonic() < began + 10.0
        answer = tool("POST", "/acquire", one("c0"))
        problem(answer, 429, "rate-limit")
        assert int(answer.headers["retry-after"]) >= 1


def test_a_lost_connection_costs_no_request(pool: BoardCaller, database: Engine) -> None:
    ask(pool, **one("c0"))
    with database.connect() as connection:
        connection.execute(OTHERS)
    assert len(ask(pool, **one("c1"))) == 1


def test_an_empty_answer_repeats_when_to_come_back(pool: BoardCaller) -> None:
    answers = [pool("POST", "/acquire", {"count": 3}, headers={"Idempotency-Key": "k"}) for _ in range(2)]
    assert [answer.json()["assignments"] for answer in answers] == [[], []]
    assert answers[0].json() == answers[1].json()
    assert answers[0].headers["Retry-After"] == answers[1].headers["Retry-After"]
