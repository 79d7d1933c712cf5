"""Single votes go past the framework: nobody can tell by the answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

from tests.api.conftest import BoardCaller, Caller, ballot, problem

VOTES: dict[str, Any] = {
    "good": {},
    "full": {"context": {"id": "c", "features": {"lang": "de"}}, "voter": "v", "voter_type": "llm", "propensity": 0.25},
    "dated": {"created_at": "2026-11-30T12:00:00.5+02:00"},
    "unknown item": {"left": "nobody"},
    "same item": {"right": "alpha"},
    "unknown outcome": {"outcome": "win"},
    "no outcome": {"outcome": None},
    "bad id": {"id": "1"},
    "bad propensity": {"propensity": 2, "voter": ""},
    "unknown field": {"colour": "red"},
    "undeclared feature": {"context": {"id": "c", "features": {"colour": "red"}}},
    "bad feature": {"context": {"id": "c", "features": {"size": "large"}}},
    "offer": {"offer": "o"},
    "menu": {"menu": ["a"], "ranking": [["a"]]},
    "assignment": {"assignment": "none", "left": None, "right": None},
    "date without zone": {"created_at": "2026-11-30T12:00:00"},
}


@pytest.mark.parametrize("fields", VOTES.values(), ids=VOTES.keys())
def test_one_vote_and_a_batch_of_one_meet_the_same_fate(make_board: Callable[..., BoardCaller], fields: Any) -> None:
    features = [{"name": "lang", "kind": "categorical"}, {"name": "size", "kind": "numeric"}]
    single, batch = make_board(features=features), make_board(features=features)
    answer, result = single.vote(**fields), batch.batch(ballot(**fields))[0]
    if answer.status_code == 201:
        assert result["status"] == "created"
        one, other = answer.json(), batch.votes()[0]
        changing = ("id", "received_at", *(() if "created_at" in fields else ("created_at",)))
        assert {**one, **dict.fromkeys(changing)} == {**other, **dict.fromkeys(changing)}
        assert single.votes() == [one]
    else:
        assert answer.json() == result["problem"]
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("slug", ["", "nowhere", "a%2Fb"])
def test_a_board_that_is_not_there(call: Caller, slug: str) -> None:
    path = f"/v1/boards/{slug}/votes"
    door, route = call("POST", path, ballot()), call("POST", f"{path}?x=1", ballot())
    assert (door.status_code, door.content) == (404, route.content)


def test_the_route_behind_the_door_says_the_same(board: BoardCaller) -> None:
    vote = ballot(id=str(uuid4()))
    through_door, through_route = board("POST", "/votes", vote), board("POST", "/votes?x=1", vote)
    assert (through_door.status_code, through_route.status_code) == (201, 200)
    assert through_door.content == through_route.content
    for bad in (ballot(left=1), [], None, "x"):
        door, route = board("POST", "/votes", bad), board("POST", "/votes?x=1", bad)
        assert (door.status_code, door.content) == (route.status_code, route.content)
    plain = {"content": b'{"left": "alpha"}', "headers": {"Content-Type": "text/plain"}}
    door, route = board("POST", "/votes", **plain), board("POST", "/votes?x=1", **plain)
    assert (door.status_code, door.content) == (route.status_code, route.content) == (422, door.content)


def test_the_same_vote_on_64_connections_is_stored_once(board: BoardCaller) -> None:
    votes = [{"id": str(uuid4()), "context": {"id": f"c{n % 3}"}, "voter": f"v{n}"} for n in range(8)]
    with ThreadPoolExecutor(64) as pool:
        answers = list(pool.map(lambda n: board.vote(**votes[n % 8]), range(128)))
    assert Counter(answer.status_code for answer in answers) == {201: 8, 200: 120}
    assert len({answer.content for answer in answers}) == 8
    assert len(board.votes()) == 8


def test_changes_hold_for_the_next_vote(call: Caller, board: BoardCaller) -> None:
    made = call("POST", "/v1/keys", {"scopes": ["votes"]}).json()
    voter = BoardCaller(Caller(call.client, {"Authorization": f"Bearer {made['key']}"}), board.slug)
    assert voter.vote().status_code == 201
    problem(voter.vote(left="a"), 422, "unknown-item")
    board("PUT", "/items/alpha", {"aliases": ["a"]})
    assert voter.vote(left="a").json()["left"] == "alpha"
    board("PUT", "/items/alpha", {"active": False})
    assert voter.vote().status_code == 201, "a retired item may still be voted on, as in a batch"
    board("PATCH", "", {"propensity": "logged"})
    problem(voter.vote(), 422, "propensity-missing")
    call("DELETE", f"/v1/keys/{made['id']}")
    problem(voter.vote(propensity=0.5), 401, "unknown-key")
    board("DELETE")
    problem(board.vote(propensity=0.5), 404, "unknown-board")
