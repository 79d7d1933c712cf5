"""Batches of votes: in order, each on its own, good ones kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from tests.api.conftest import BoardCaller, ballot, problem

MakeBoard = Callable[..., BoardCaller]


def statuses(results: list[dict[str, Any]]) -> list[str]:
    return [result["status"] for result in results]


def test_results_come_in_order_and_good_rows_stay(board: BoardCaller) -> None:
    stored = ballot(id=str(uuid4()))
    board.vote(**stored)
    fresh = ballot(id=str(uuid4()), context={"id": "c", "features": {"lang": "en"}}, voter="v")
    results = board.batch(
        fresh,
        ballot(outcome="?"),
        stored,
        {**stored, "outcome": "tie"},
        "no object",
        {**fresh, "id": str(uuid4())},
        ballot(left="beta", right="gamma"),
    )
    assert statuses(results) == ["created", "rejected", "duplicate", "rejected", "rejected", "rejected", "created"]
    assert results[0] == {"status": "created", "vote": fresh["id"]}
    assert results[2] == {"status": "duplicate", "vote": stored["id"]}
    codes = [result["problem"]["type"].rsplit(":", 1)[1] for result in results if "problem" in result]
    assert codes == ["unknown-outcome", "vote-id-taken", "bad-field", "second-vote"]
    assert all(result["vote"] is None for result in results if "problem" in result)
    assert len(board.votes()) == 3


def test_a_batch_sent_again_is_all_duplicates(board: BoardCaller) -> None:
    ballots = [ballot(id=str(uuid4()), context={"id": f"c{number}"}, voter="v") for number in range(50)]
    assert set(statuses(board.batch(*ballots))) == {"created"}
    assert set(statuses(board.batch(*reversed(ballots)))) == {"duplicate"}
    assert len(board.votes()) == 50


def test_a_row_twice_in_a_batch(board: BoardCaller) -> None:
    one = ballot(id=str(uuid4()), context={"id": "c"}, voter="v")
    other = {**one, "outcome": "right"}
    assert statuses(board.batch(one, one, other, {**one, "id": str(uuid4())})) == [
        "created",
        "duplicate",
        "rejected",
        "rejected",
    ]


def test_what_repeats_a_refused_row_is_refused(board: BoardCaller) -> None:
    board.vote(context={"id": "c"}, voter="v")
    late = ballot(id=str(uuid4()), context={"id": "c"}, voter="v")
    results = board.batch(late, late)
    assert statuses(results) == ["rejected", "rejected"]
    assert {result["problem"]["type"] for result in results} == {"urn:orthorank:problem:second-vote"}


def test_contexts_are_known_from_their_first_row(board: BoardCaller) -> None:
    contexts: list[dict[str, Any]] = [
        {"id": "c"},
        {"id": "c", "features": {"lang": "en"}},
        {"id": "c", "features": {"lang": "fr"}},
    ]
    results = board.batch(*[ballot(context=context) for context in contexts])
    assert statuses(results) == ["created", "created", "rejected"]
    assert results[2]["problem"]["path"] == "context.features"


def test_revotes_in_one_batch_supersede_in_order(make_board: MakeBoard) -> None:
    board = make_board(votes={"revotes": True})
    first = board.vote(context={"id": "c"}, voter="v").json()["id"]
    results = board.batch(*[ballot(context={"id": "c"}, voter="v", outcome=name) for name in ("right", "tie", "left")])
    rules = board("GET", "/exclusions").json()["exclusions"]
    assert [rule["vote"] for rule in rules] == [first, results[0]["vote"], results[1]["vote"]]


def test_many_at_once_but_no_more_than_ten_thousand(board: BoardCaller) -> None:
    ballots = [ballot(context={"id": f"c{number % 7}"}, voter=f"v{number}") for number in range(10_000)]
    assert set(statuses(board.batch(*ballots))) == {"created"}
    document = problem(board("POST", "/votes/batch", {"votes": [*ballots, ballot()]}), 422, "bad-field")
    assert document["path"] == "votes"
    assert board.batch() == []


def test_a_batch_without_votes_is_told_so(board: BoardCaller) -> None:
    assert problem(board("POST", "/votes/batch", {}), 422, "missing-field")["path"] == "votes"
    assert problem(board("POST", "/votes/batch", {"votes": {}}), 422, "bad-field")["path"] == "votes"


def test_a_first_vote_offers_its_context(make_board: MakeBoard, offered: Callable[[str], dict[str, bool]]) -> None:
    for unit in ("context", "battle"):
        board = make_board(unit=unit)
        board("POST", "/contexts", {"contexts": [{"id": "pool"}, {"id": "other"}]})
        board.batch(ballot(context={"id": "pool"}), ballot(context={"id": "new"}))
        assert offered(board.slug) == {"pool": True, "other": False, "new": True}
