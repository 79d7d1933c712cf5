"""Which pair next, over HTTP: draws, leases, answers, releases, refusals."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from sqlalchemy import Engine, text

from app.learners import load_model
from app.services.loaded import shelf
from app.stats.types import OutcomeModel
from tests.api.conftest import BoardCaller, problem
from tests.refitting import Bench

Make = Callable[..., BoardCaller]
ITEMS = ("ada", "bell", "curie", "dirac")
FEATURES = [{"name": "size", "kind": "numeric"}]


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture
def pool(make_board: Make) -> BoardCaller:
    return make_board(items=ITEMS, unit="context", features=FEATURES)


def contexts(size: int, *, start: int = 0) -> list[dict[str, Any]]:
    return [{"id": f"c{number}", "features": {"size": number % 7 - 3.0}} for number in range(start, start + size)]


def ask(board: BoardCaller, **body: Any) -> list[dict[str, Any]]:
    answer = board("POST", "/acquire", body)
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["assignments"]
    return found


def answer_all(board: BoardCaller, assignments: list[dict[str, Any]], *, seed: int) -> None:
    """Earlier items win more often, the more so the larger the context."""
    rng = np.random.default_rng(seed)
    votes = []
    for each in assignments:
        edge = ITEMS.index(each["right"]) - ITEMS.index(each["left"])
        size = int(each["context"][1:]) % 7 - 3.0
        wins = rng.random() < 1 / (1 + np.exp(-(0.4 + 0.5 * size) * edge))
        votes.append({"assignment": each["id"], "outcome": "left" if wins else "right", "voter": f"v{len(votes)}"})
    assert {each["status"] for each in board.batch(*votes)} == {"created"}


def learned(board: BoardCaller, bench: Bench, *, size: int = 400) -> None:
    answer_all(board, ask(board, contexts=contexts(size)), seed=1)
    bench.refit(board.slug)


@pytest.mark.parametrize("mode", ["bernoulli", "single", "one"])
def test_before_a_refit_all_pairs_are_alike(pool: BoardCaller, mode: str) -> None:
    answer = pool("POST", "/acquire", {"contexts": contexts(300), "mode": mode}).json()
    assert answer["policy"]["objective"] == "uniform"
    assert answer["policy"]["lambda"] is None
    assert np.allclose([each["propensity"] for each in answer["assignments"]], 1 / 12)
    per_context = Counter(each["context"] for each in answer["assignments"])
    if mode == "one":
        assert set(per_context.values()) == {1}
        assert len(per_context) == 300


def test_a_learned_policy_prefers_some_pairs(pool: BoardCaller, bench: Bench) -> None:
    learned(pool, bench)
    answer = pool("POST", "/acquire", {"contexts": contexts(200, start=1000)}).json()
    assert answer["policy"]["objective"] == "a-optimal"
    assert answer["policy"]["lambda"] > 0
    assert answer["policy"]["expected_cost"] == pytest.approx(1.0)
    chances = {each["propensity"] for each in answer["assignments"]}
    assert len(chances) > 20
    assert min(chances) >= 0.2 / 12 - 1e-12
    policy = pool("GET", "/policy").json()
    assert policy["id"] == answer["policy"]["id"]
    assert sum(pair["propensity"] for pair in policy["pairs"]) == pytest.approx(1.0, rel=0.02)
    assert 0 < policy["relative_variance"] <= 1.001
    assert 0 <= policy["reliability"] <= 1


def test_no_model_is_loaded_by_a_request(pool: BoardCaller, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[str] = []

    def recorded(body: bytes) -> OutcomeModel:
        threads.append(threading.current_thread().name)
        return load_model(body)

    monkeypatch.setattr(shelf, "load_model", recorded)
    learned(pool, bench)
    first = pool("POST", "/acquire", {"contexts": contexts(100, start=1000)}).json()
    assert first["policy"]["objective"] == "a-optimal"
    loaded = len(threads)
    for start in (2000, 3000):
        assert pool("POST", "/acquire", {"contexts": contexts(5, start=start)}).json()["policy"] == first["policy"]
    assert len(threads) == loaded > 0
    answer_all(pool, first["assignments"], seed=3)
    bench.refit(pool.slug)
    answers = (pool("POST", "/acquire", {"contexts": contexts(1, start=4000 + n)}).json() for n in range(1000))
    # While the newer policy is loaded, the older one answers.
    newer = next(each["policy"]["id"] for each in answers if each["policy"]["id"] != first["policy"]["id"])
    assert newer == pool("GET", "/policy").json()["id"]
    assert len(threads) == 2 * loaded
    assert {name.rpartition("_")[0] for name in threads} == {"policy-loader"}


def test_every_offered_context_is_a_row(pool: BoardCaller, bench: Bench) -> None:
    drawn = ask(pool, contexts=contexts(300))
    answer_all(pool, drawn, seed=2)
    bench.refit(pool.slug)
    ranking = pool("GET", "/rankings?estimand=borda").json()
    assert ranking["rows"] == 300
    assert ranking["propensity"] == "logged"
    assert ranking["votes"] == len(drawn)


def test_votes_take_the_draw_from_their_assignment(pool: BoardCaller) -> None:
    drawn = ask(pool, contexts=contexts(3), mode="one", annotator="anna")
    first = drawn[0]
    identifier = str(uuid4())
    body = {"id": identifier, "assignment": first["id"], "outcome": "left"}
    answer = pool("POST", "/votes", body)
    assert answer.status_code == 201
    vote = answer.json()
    assert (vote["left"], vote["right"], vote["propensity"]) == (first["left"], first["right"], first["propensity"])
    assert (vote["context"]["id"], vote["voter"]) == (first["context"], "anna")
    assert pool("POST", "/votes", body).status_code == 200
    problem(pool("POST", "/votes", {**body, "id": str(uuid4())}), 409, "assignment-answered")
    fates = pool.batch(*[{"assignment": drawn[1]["id"], "outcome": "right"}] * 2)
    assert [fate["status"] for fate in fates] == ["created", "rejected"]


@pytest.mark.parametrize(
    ("field", "value"), [("left", "zz"), ("propensity", 0.5), ("context", {"id": "other"}), ("offer", "o1")]
)
def test_a_vote_may_not_contradict_its_assignment(pool: BoardCaller, field: str, value: Any) -> None:
    first = ask(pool, contexts=contexts(1), mode="one")[0]
    answer = pool("POST", "/votes", {"assignment": first["id"], "outcome": "left", field: value})
    assert problem(answer, 422, "contradicts-assignment")["path"] == field


def test_assignments_of_other_boards_are_unknown(pool: BoardCaller, make_board: Make) -> None:
    first = ask(pool, contexts=contexts(1), mode="one")[0]
    other = make_board(items=ITEMS)
    problem(other("POST", "/votes", {"assignment": first["id"], "outcome": "left"}), 422, "unknown-assignment")
    problem(other("POST", f"/assignments/{first['id']}/release", {"reason": "x"}), 404, "unknown-assignment")
    problem(pool("POST", "/votes", {"assignment": "nonsense", "outcome": "left"}), 422, "unknown-assignment")


def test_a_released_pair_is_not_asked_again(pool: BoardCaller) -> None:
    assert pool("POST", "/contexts", {"contexts": contexts(1)}).status_code == 201
    first = pool("POST", "/acquire", {"count": 1, "mode": "one"}).json()["assignments"][0]
    path = f"/assignments/{first['id']}/release"
    assert pool("POST", path, {"reason": "both are broken"}).status_code == 204
    problem(pool("POST", path, {"reason": "again"}), 409, "assignment-skipped")
    problem(pool("POST", "/votes", {"assignment": first["id"], "outcome": "left"}), 409, "assignment-skipped")
    assert ask(pool, count=1, mode="one") == []


def test_the_pool_is_handed_out_once(pool: BoardCaller) -> None:
    pool("POST", "/contexts", {"contexts": contexts(30)})
    seen: list[str] = []
    for annotator in ("anna", "ben", "cleo"):
        seen += [each["context"] for each in ask(pool, count=12, mode="one", annotator=annotator)]
    assert len(seen) == len(set(seen)) == 30
    assert seen != sorted(seen, key=lambda name: int(name[1:]))
    answer = pool("POST", "/acquire", {"count": 5, "mode": "one"})
    assert answer.json()["assignments"] == []
    assert 3500 <= int(answer.headers["retry-after"]) <= 3600


def expire(database: Engine, *assignments: str) -> None:
    with database.begin() as connection:
        connection.execute(
            text(
                "UPDATE assignments SET expires_at = now() - interval '1 minute' WHERE id = ANY(CAST(:ids AS uuid[]))"
            ),
            {"ids": list(assignments)},
        )


def test_an_expired_lease_is_given_to_another_as_it_was_drawn(pool: BoardCaller, database: Engine) -> None:
    pool("POST", "/contexts", {"contexts": contexts(2)})
    late, given = ask(pool, count=2, mode="one", annotator="anna")
    expire(database, late["id"], given["id"])
    assert pool("POST", "/votes", {"assignment": late["id"], "outcome": "left"}).status_code == 201
    assert ask(pool, count=2, mode="one", annotator="anna") == []
    again = ask(pool, count=2, mode="one", annotator="ben")
    same = ("context", "left", "right", "propensity")
    assert [{name: each[name] for name in same} for each in again] == [{name: given[name] for name in same}]
    assert again[0]["id"] != given["id"]
    problem(pool("POST", "/votes", {"assignment": given["id"], "outcome": "left"}), 409, "assignment-lapsed")
    assert pool("POST", "/votes", {"assignment": again[0]["id"], "outcome": "left"}).status_code == 201


def test_draws_for_contexts_of_the_request_lapse(pool: BoardCaller, database: Engine) -> None:
    drawn = ask(pool, contexts=contexts(1), mode="one", annotator="anna")
    expire(database, drawn[0]["id"])
    assert ask(pool, count=1, mode="one", annotator="ben") == []


def test_overlap_asks_several_annotators(make_board: Make) -> None:
    board = make_board(items=ITEMS, unit="context", acquisition={"overlap": 2, "mode": "one"})
    board("POST", "/contexts", {"contexts": [{"id": "c0"}]})
    first, second = (ask(board, count=3, annotator=name) for name in ("anna", "ben"))
    assert len(first) == len(second) == 1
    assert first[0]["id"] != second[0]["id"]
    assert (first[0]["left"], first[0]["right"]) == (second[0]["left"], second[0]["right"])
    assert ask(board, count=3, annotator="anna") == ask(board, count=3, annotator="cleo") == []


def test_nobody_is_asked_the_same_twice(make_board: Make) -> None:
    board = make_board(items=("ada", "bell"), acquisition={"budget": 2.0})
    assert len(ask(board, contexts=[{"id": "c0"}], annotator="anna")) == 2
    assert ask(board, contexts=[{"id": "c0"}], annotator="anna") == []
    assert len(ask(board, contexts=[{"id": "c0"}], annotator="ben")) == 2


def test_the_same_key_has_the_same_draw(pool: BoardCaller) -> None:
    body = {"contexts": contexts(20)}
    first, second = (pool("POST", "/acquire", body, headers={"Idempotency-Key": "k"}).json() for _ in range(2))
    assert first == second
    other = pool("POST", "/acquire", {"contexts": contexts(21)}, headers={"Idempotency-Key": "k"})
    problem(other, 409, "key-taken")
    assert pool("POST", "/acquire", body).json() != first


def test_inactive_items_are_never_offered(pool: BoardCaller, bench: Bench) -> None:
    learned(pool, bench)
    pool("PUT", "/items/ada", {"active": False})
    pool("PUT", "/items/euler", {})
    drawn = ask(pool, contexts=contexts(300, start=5000))
    shown = {each[side] for each in drawn for side in ("left", "right")}
    assert shown == {"bell", "curie", "dirac", "euler"}


@pytest.mark.parametrize(
    ("body", "code", "path"),
    [
        ({"contexts": [{"id": "x", "features": {"colour": 1}}]}, "undeclared-feature", "contexts.0.features.colour"),
        ({"contexts": [{"id": "x", "features": {"size": "big"}}]}, "bad-feature", "contexts.0.features.size"),
        ({"contexts": [{"id": "x"}, {"id": "x"}]}, "context-repeats", "contexts"),
        ({"contexts": [{"id": "x"}], "count": 2}, "count-with-contexts", "count"),
        ({"contexts": [], "mode": "magic"}, "bad-field", "mode"),
        ({"contexts": [{"id": f"x{number}"} for number in range(1001)]}, "bad-field", "contexts"),
        ({"count": 0}, "bad-field", "count"),
        ({"count": 1, "colour": "red"}, "unknown-field", "colour"),
    ],
)
def test_bad_requests_leave_nothing(
    pool: BoardCaller, offered: Callable[[str], dict[str, bool]], body: dict[str, Any], code: str, path: str
) -> None:
    assert problem(pool("POST", "/acquire", body), 422, code)["path"] == path
    assert offered(pool.slug) == {}


def test_boards_that_cannot_draw(make_board: Make) -> None:
    lonely = make_board(items=("ada",))
    problem(lonely("POST", "/acquire", {"contexts": [{"id": "x"}]}), 422, "few-items")
    rich = make_board(items=("ada", "bell"), acquisition={"budget": 2.5})
    problem(rich("POST", "/acquire", {"contexts": [{"id": "x"}]}), 422, "budget-unreachable")
    problem(rich("POST", "/acquire", {"contexts": [{"id": "x"}], "mode": "single"}), 422, "budget-unreachable")
    assert rich("POST", "/acquire", {"contexts": [{"id": "x"}], "mode": "one"}).status_code == 200


def test_a_key_needs_the_scope(pool: BoardCaller, call: Any) -> None:
    key = call("POST", "/v1/keys", {"name": "reader", "scopes": ["read"]}).json()["key"]
    answer = pool("POST", "/acquire", {"count": 1}, headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 403
