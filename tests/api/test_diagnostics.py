"""GET …/diagnostics: what it says of a known board, who may read what, and boards of which little can be said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest
from sqlalchemy import Engine

from app.api.diagnosis import Diagnostics
from app.services.diagnostics import SECTIONS
from tests.api.conftest import BoardCaller, Caller, ballot, problem
from tests.refitting import FEATURES, Bench, ballots

ITEMS = ("ada", "bell", "curie", "dirac")
Make = Callable[..., BoardCaller]


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def read(board: BoardCaller, query: str = "") -> dict[str, Any]:
    """The document, which has the shape that is declared."""
    answer = board("GET", f"/diagnostics{query}")
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    Diagnostics.model_validate(document)
    return document


def refitted(bench: Bench, make_board: Make, votes: list[dict[str, Any]], **fields: Any) -> BoardCaller:
    board = make_board(items=ITEMS, **fields)
    if votes:
        board.batch(*votes)
    bench.refit(board.slug)
    return board


def test_before_the_first_snapshot_every_section_is_null(make_board: Make) -> None:
    document = read(make_board())
    assert document["status"] == "pending"
    assert [document[name] for name in SECTIONS] == [None] * len(SECTIONS)
    assert (document["judges"], document["judges_left_out"], document["propensity_model"]) == ([], [], None)


def test_every_section_speaks_of_a_board_with_votes(bench: Bench, make_board: Make) -> None:
    votes = ballots(ITEMS, 600, seed=1, voters=10, contexts=300)
    found = read(refitted(bench, make_board, votes, features=FEATURES))
    # Every item beats every lower one by the same margin: that is no difference of scores.
    assert found["intransitivity"]["status"] == "skewed"
    ordinary = set(SECTIONS) - {"intransitivity", "learner", "drift"}
    assert {name: found[name]["status"] for name in ordinary} == dict.fromkeys(ordinary, "ok")
    assert found["support"]["supported"] == found["support"]["pairs"] == 6
    assert sum(row["votes"] for row in found["overlap"]["items"]) == 1200
    assert sum(row["votes"] for row in found["overlap"]["pairs"]) == 600
    assert {row["item"] for row in found["outcomes"]["items"]} == set(ITEMS)
    assert found["outcomes"]["rates"].keys() == {"tie", "both_bad"}
    assert found["learner"]["gain_over_base"]["interval"][0] > 0
    assert found["sensitivity"]["rules"] == ["half", "drop tie", "drop both_bad", "drop all of these"]
    assert found["sensitivity"]["estimands"][0]["rules"][0]["kendall"] == 1.0
    assert found["voters"]["judged"] == 10


@pytest.mark.parametrize("path", ["/diagnostics?raw_voter=true", "/pairs?levels=0.9", "/policy?mode=one"])
def test_misspelt_questions_are_refused(board: BoardCaller, path: str) -> None:
    document = problem(board("GET", path), 422, "unknown-field")
    assert document["path"] == path.partition("?")[2].partition("=")[0]


def test_an_equal_document_is_not_sent_again(bench: Bench, make_board: Make) -> None:
    board = refitted(bench, make_board, ballots(ITEMS, 60, seed=2))
    first = board("GET", "/diagnostics")
    again = board("GET", "/diagnostics", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert first.headers["cache-control"] == "private, no-cache"


def test_voters_have_the_names_of_exports_unless_an_admin_asks(bench: Bench, make_board: Make, nobody: Caller) -> None:
    board = refitted(bench, make_board, ballots(ITEMS, 300, seed=3, voters=5), public=True)
    raw = {row["voter"] for row in read(board, "?raw_voters=true")["voters"]["listed"]}
    assert raw == {f"v{n}" for n in range(5)}
    exported = {vote["voter"] for vote in map(dict, _lines(board("GET", "/votes/export").text))}
    reader = BoardCaller(nobody, board.slug)
    assert {row["voter"] for row in read(reader)["voters"]["listed"]} == exported
    problem(reader("GET", "/diagnostics?raw_voters=true"), 401, "key-missing")


@pytest.mark.parametrize("size", [0, 1, 400])
def test_the_page_shows_every_section(bench: Bench, make_board: Make, nobody: Caller, size: int) -> None:
    board = refitted(bench, make_board, ballots(ITEMS, size, seed=8, voters=5), public=True)
    page = nobody("GET", f"/boards/{board.slug}/diagnostics")
    assert page.status_code == 200, page.text
    assert [name for name in SECTIONS if f'id="{name}"' not in page.text] == []


def test_the_heaviest_votes_go_by_their_public_ids(bench: Bench, make_board: Make) -> None:
    votes = ballots(ITEMS, 80, seed=4)
    votes[7]["propensity"] = 0.01
    board = refitted(bench, make_board, votes)
    heavy = read(board)["overlap"]["heaviest"][0]
    told = next(vote for vote in board.votes() if vote["id"] == heavy["vote"])
    assert (told["left"], told["right"]) == (heavy["left"], heavy["right"]) == (votes[7]["left"], votes[7]["right"])
    assert heavy["weight"] == pytest.approx(100.0)


DEGENERATE: dict[str, tuple[tuple[str, ...], list[dict[str, Any]]]] = {
    "nothing": ((), []),
    "no votes": (ITEMS, []),
    "one item": (("ada",), []),
    "one vote": (ITEMS, [ballot(left="ada", right="bell")]),
    "two items": (("ada", "bell"), ballots(("ada", "bell"), 40, seed=5, voters=2)),
    "one class": (ITEMS, [each | {"outcome": "tie"} for each in ballots(ITEMS, 40, seed=6, voters=1)]),
    "one side": (ITEMS, [each | {"outcome": "left"} for each in ballots(ITEMS, 40, seed=7, voters=1)]),
    "two islands": (ITEMS, [ballot(left=a, right=b) for a, b in (ITEMS[:2], ITEMS[2:]) for _ in range(30)]),
}


@pytest.mark.parametrize("name", DEGENERATE)
@pytest.mark.parametrize("outcomes", ["arena", "binary"])
def test_boards_of_which_little_can_be_said(bench: Bench, make_board: Make, name: str, outcomes: str) -> None:
    items, votes = DEGENERATE[name]
    board = make_board(items=items, outcomes=outcomes)
    if outcomes == "binary":
        votes = [each | {"outcome": "left"} for each in votes]
    if votes:
        board.batch(*votes)
    bench.refit(board.slug)
    found = read(board)
    if not votes:
        assert {found[each]["status"] for each in SECTIONS} == {"no_votes"}


def test_islands_are_told_apart(bench: Bench, make_board: Make) -> None:
    items, votes = DEGENERATE["two islands"]
    board = make_board(items=items)
    board.batch(*votes)
    bench.refit(board.slug)
    found = read(board)["support"]
    assert found["status"] == "disconnected"
    assert sorted(found["components"]) == [["ada", "bell"], ["curie", "dirac"]]


def _lines(text: str) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in text.splitlines()]
