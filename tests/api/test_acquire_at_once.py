"""Requests for one context: two statements where that is enough, the long way where it is not, and never half of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from sqlalchemy import Engine, event, text

from tests.api.conftest import BoardCaller, problem
from tests.api.test_acquire import FEATURES, ITEMS, ask

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

    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Engine, "before_cursor_execute", note)


def stored(database: Engine, board: BoardCaller) -> tuple[int, ...]:
    """Contexts, offers and assignments of a board."""
    with database.connect() as connection:
        return tuple(connection.execute(COUNTS, {"slug": board.slug}).one())


def one(name: str, size: float | None = 1.0) -> dict[str, Any]:
    return {"contexts": [{"id": name, **({} if size is None else {"features": {"size": size}})}]}


def test_one_context_takes_two_statements(pool: BoardCaller, database: Engine) -> None:
    ask(pool, **one("c0"))
    with statements() as sent:
        drawn = [ask(pool, **one("c1"), annotator="anna"), ask(pool, **one("c0"))]
    mine = [statement for statement in sent if "boards" in statement or "offers" in statement]
    assert len(mine) == 4
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
