"""Votes on menus over HTTP: what is taken, what is refused and where, and that nothing is lost on the way out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from httpx2 import Response
from sqlalchemy import Engine

from app.db.engine import open_sessions
from app.db.unit_of_work import UnitOfWork
from app.formats.plan import Request
from app.formats.registry import MAPPED, ORTHORANK
from app.formats.writers import CONTAINERS, Container
from app.services.imports.orders import Order, Reject, Summary
from app.services.imports.run import run
from tests.api.conftest import BoardCaller, Caller, problem

MakeBoard = Callable[..., BoardCaller]
ITEMS = ("alpha", "beta", "gamma", "delta")
NUMBERS = count()


@pytest.fixture
def menus(make_board: MakeBoard) -> BoardCaller:
    """A board with four items."""
    return make_board(items=ITEMS)


def ranking(**fields: Any) -> dict[str, Any]:
    """A ranking of three items, changed by the fields; None takes a field out."""
    document = {"menu": ["alpha", "beta", "gamma"], "ranking": [["beta"], ["alpha"]], **fields}
    return {name: value for name, value in document.items() if value is not None}


def rank(board: BoardCaller, **fields: Any) -> Response:
    return board("POST", "/votes", ranking(**fields))


def test_a_ranking_comes_back_as_sent(menus: BoardCaller) -> None:
    menus("PUT", "/items/beta", {"aliases": ["b"]})
    sent = {"id": str(uuid4()), "menu": ["gamma", "alpha", "b", "delta"], "ranking": [["b"], ["delta", "alpha"]]}
    answer = rank(menus, **sent, context={"id": "p"}, voter="v", propensity=0.25)
    assert answer.status_code == 201, answer.text
    document = answer.json()
    said = {"menu": ["gamma", "alpha", "beta", "delta"], "ranking": [["beta"], ["delta", "alpha"]], "kind": "partial"}
    nothing = {"left": None, "right": None, "outcome": None, "offer": None}
    assert document.items() >= ({"id": sent["id"], "context": {"id": "p"}, "propensity": 0.25} | said | nothing).items()
    assert menus.votes() == [document]
    assert rank(menus, **sent, context={"id": "p"}, voter="v", propensity=0.25).json() == document


def test_a_winner_is_a_kind_of_its_own(menus: BoardCaller) -> None:
    answer = rank(menus, ranking=[["gamma"]], kind="winner")
    assert (answer.status_code, answer.json()["kind"]) == (201, "winner")


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"menu": ["alpha", "beta", "ghost"]}, "unknown-item", "menu.2"),
    ({"ranking": [["beta"], ["delta"]]}, "outside-menu", "ranking.1.0"),
    ({"ranking": [["beta"], ["ghost"]]}, "outside-menu", "ranking.1.0"),
    ({"menu": ["alpha", "beta", "alpha"]}, "item-twice", "menu.2"),
    ({"menu": ["alpha", "beta", "a"]}, "item-twice", "menu.2"),
    ({"ranking": [["beta"], ["alpha", "beta"]]}, "item-twice", "ranking.1.1"),
    ({"ranking": [["alpha"], ["a"]]}, "item-twice", "ranking.1.0"),
    ({"ranking": [["beta"], []]}, "empty-tier", "ranking.1"),
    ({"menu": ["beta"], "ranking": [["beta"]]}, "small-menu", "menu"),
    ({"menu": []}, "small-menu", "menu"),
    ({"kind": "winner"}, "no-winner", "ranking"),
    ({"kind": "winner", "ranking": [["alpha", "beta"]]}, "no-winner", "ranking"),
    ({"kind": "winner", "ranking": []}, "no-winner", "ranking"),
    ({"kind": "pair"}, "unknown-kind", "kind"),
    ({"kind": "borda"}, "unknown-kind", "kind"),
    ({"left": "alpha"}, "pair-and-menu", "left"),
    ({"right": "alpha"}, "pair-and-menu", "right"),
    ({"outcome": "left"}, "pair-and-menu", "outcome"),
    ({"menu": None}, "missing", "menu"),
    ({"ranking": None}, "missing", "ranking"),
    ({"ranking": ["beta"]}, "bad-field", "ranking.0"),
    ({"ranking": [["beta"], [7]]}, "bad-field", "ranking.1.0"),
    ({"menu": [f"i{number}" for number in range(101)]}, "bad-field", "menu"),
    ({"assignment": "none"}, "unknown-assignment", "assignment"),
    ({"offer": "o"}, "offer-without-context", "offer"),
]


@pytest.mark.parametrize(("fields", "code", "path"), REFUSED)
def test_what_is_no_ranking_of_a_menu_is_refused_at_its_place(
    menus: BoardCaller, fields: dict[str, Any], code: str, path: str
) -> None:
    menus("PUT", "/items/alpha", {"aliases": ["a"]})
    found = problem(rank(menus, **fields), 422, code)
    assert found["path"] == path
    fates = menus.batch(ranking(**fields), ranking())
    assert [fate["status"] for fate in fates] == ["rejected", "created"]
    assert (fates[0]["problem"]["type"].rpartition(":")[2], fates[0]["problem"]["path"]) == (code, path)


def test_a_board_of_graded_outcomes_takes_no_rankings(make_board: MakeBoard) -> None:
    better = [{"name": "better", "first": 0.8, "second": 0.2}, {"name": "worse", "first": 0.2, "second": 0.8}]
    assert problem(rank(make_board(outcomes=better)), 422, "pairs-only")["path"] == "menu"


def test_a_board_of_logged_propensities_wants_the_menu_s(make_board: MakeBoard) -> None:
    board = make_board(propensity="logged")
    assert problem(rank(board), 422, "propensity-missing")["path"] == "propensity"
    assert rank(board, propensity=0.5).status_code == 201


@pytest.mark.parametrize(
    "spelling",
    [
        {"menu": ["gamma", "beta", "a"]},
        {"ranking": [["beta"], ["a"], ["gamma"]]},
        {"kind": "partial"},
    ],
)
def test_the_same_ranking_in_another_spelling_is_a_duplicate(menus: BoardCaller, spelling: dict[str, Any]) -> None:
    menus("PUT", "/items/alpha", {"aliases": ["a"]})
    key = str(uuid4())
    assert rank(menus, id=key).status_code == 201
    assert rank(menus, id=key, **spelling).status_code == 200
    assert len(menus.votes()) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"ranking": [["beta", "alpha"]]},
        {"ranking": [["alpha"], ["beta"]]},
        {"menu": ["alpha", "beta", "delta"]},
        {"ranking": [["beta"]], "kind": "winner"},
        {"propensity": 0.5},
    ],
)
def test_another_ranking_of_the_same_id_is_a_conflict(menus: BoardCaller, change: dict[str, Any]) -> None:
    key = str(uuid4())
    assert rank(menus, id=key).status_code == 201
    problem(rank(menus, id=key, **change), 409, "vote-id-taken")


def test_a_second_ranking_of_one_menu_is_a_conflict(menus: BoardCaller) -> None:
    menus("PUT", "/items/alpha", {"aliases": ["a"]})
    vote = {"context": {"id": "c"}, "voter": "v"}
    assert rank(menus, **vote).status_code == 201
    again = {"menu": ["gamma", "a", "beta"], "ranking": [["gamma"]]}
    problem(rank(menus, **vote, **again), 409, "second-vote")
    fates = menus.batch(ranking(voter="w", context={"id": "c"}), ranking(voter="w", context={"id": "c"}, **again))
    assert [fate["status"] for fate in fates] == ["created", "rejected"]
    assert rank(menus, **vote, menu=list(ITEMS)).status_code == 201, "another menu"
    assert rank(menus, voter="v", context={"id": "d"}).status_code == 201
    assert rank(menus, menu=["alpha", "beta"], **vote).status_code == 201
    pair = {"left": "alpha", "right": "beta", "outcome": "left", **vote}
    assert menus("POST", "/votes", pair).status_code == 201, "a pair is no menu"
    assert [rank(menus, **fields).status_code for fields in ({"voter": "v"}, {"voter": "v"}, {}, {})] == [201] * 4


def test_a_ranking_again_supersedes_where_that_is_allowed(make_board: MakeBoard) -> None:
    board = make_board(items=ITEMS, votes={"revotes": True})
    vote = {"context": {"id": "c"}, "voter": "v"}
    ids = [rank(board, **vote, ranking=[[best]]).json()["id"] for best in ("alpha", "beta")]
    batch = [ranking(**vote, ranking=[[best]]) for best in ("gamma", "alpha")]
    ids += [fate["vote"] for fate in board.batch(*batch)]
    rules = board("GET", "/exclusions").json()["exclusions"]
    assert [(rule["vote"], rule["reason"]) for rule in rules] == [(key, "superseded") for key in ids[:3]]


def test_new_items_of_menus_are_created_on_open_boards_only_with_their_vote(make_board: MakeBoard) -> None:
    board = make_board(items=("alpha",), open_items=True)
    assert problem(rank(board, menu=["alpha", "x"], ranking=[["y"]]), 422, "outside-menu")
    assert rank(board, menu=["alpha", "new"], ranking=[["new"]]).status_code == 201
    vote = {"context": {"id": "c"}, "voter": "v", "menu": ["p", "q"], "ranking": [["p"]]}
    assert [rank(board, **vote).status_code for _ in range(2)] == [201, 409]
    names = {item["item"] for item in board("GET", "/items").json()["items"]}
    assert names == {"alpha", "new", "p", "q"}


def test_rankings_count_in_a_voter_s_day(make_board: MakeBoard) -> None:
    board = make_board(votes={"per_voter_per_day": 2})
    assert [rank(board, voter="v").status_code for _ in range(3)] == [201, 201, 429]


def excluded(board: BoardCaller) -> list[bool]:
    lines = board("GET", "/votes/export").text.splitlines()
    return [json.loads(line)["excluded"] is not None for line in lines]


@pytest.mark.parametrize(
    ("rule", "hit"),
    [
        ({"item": "gamma"}, [True, False, False]),
        ({"item": "g"}, [True, False, False]),
        ({"item": "alpha"}, [True, True, True]),
        ({"item": "delta"}, [False, True, False]),
        ({"outcome": "left"}, [False, False, True]),
        ({"outcome": "tie"}, [False, False, False]),
        ({"context": "c"}, [True, False, False]),
        ({"voter_type": "human"}, [True, True, True]),
    ],
)
def test_rules_find_rankings_by_any_item_and_never_by_an_outcome(
    menus: BoardCaller, rule: dict[str, Any], hit: list[bool]
) -> None:
    menus("PUT", "/items/gamma", {"aliases": ["g"]})
    rank(menus, context={"id": "c"})
    rank(menus, menu=["alpha", "delta"], ranking=[])
    menus.vote()
    assert menus("POST", "/exclusions", {"filter": rule, "reason": "why"}).status_code == 201
    assert excluded(menus) == hit


class Rejects:
    """Watches an import and keeps what it refuses."""

    def __init__(self) -> None:
        self.told: list[tuple[int, str]] = []

    def advanced(self, position: int, size: int) -> None:
        pass

    def rejected(self, reject: Reject) -> None:
        self.told.append((reject.place.line, reject.reason))


def imported(engine: Engine, path: Path, slug: str, request: Request) -> tuple[Summary, Rejects]:
    rejects = Rejects()
    return run(partial(UnitOfWork, open_sessions(engine)), Order(path, slug, request), rejects), rejects


@pytest.mark.parametrize("container", CONTAINERS)
def test_an_import_of_an_export_gives_the_same_rankings(
    call: Caller, menus: BoardCaller, database: Engine, tmp_path: Path, container: Container
) -> None:
    menus("PUT", "/items/gamma", {"aliases": ["g, \"'"]})
    fates = menus.batch(
        ranking(context={"id": "c"}, voter="v", propensity=0.5),
        ranking(menu=["g, \"'", "alpha"], ranking=[["g, \"'", "alpha"]]),
        {"left": "alpha", "right": "beta", "outcome": "tie"},
        ranking(ranking=[["gamma"]], kind="winner"),
        ranking(ranking=[]),
    )
    menus("POST", "/exclusions", {"vote": fates[3]["vote"], "reason": "bot"})
    path = tmp_path / "export"
    path.write_bytes(menus("GET", f"/votes/export?format={container}&raw_voters=true").content)
    copy = BoardCaller(call, f"menus-copy-{next(NUMBERS)}")
    summary, rejects = imported(database, path, copy.slug, Request(ORTHORANK))
    assert (summary.votes, summary.excluded, rejects.told) == (Counter(created=5), 1, [])
    lines = [board("GET", "/votes/export?raw_voters=true").text for board in (menus, copy)]
    assert sorted(lines[0].splitlines()) == sorted(lines[1].splitlines())
    by_id = {each["id"]: each for each in map(json.loads, lines[0].splitlines())}
    told = [by_id[fate["vote"]] for fate in fates]
    assert [each["kind"] for each in told] == ["partial", "partial", "pair", "winner", "partial"]
    assert [each["ranking"] for each in told][:3] == [[["beta"], ["alpha"]], [["gamma", "alpha"]], None]
    assert [each["menu"] for each in told][1:3] == [["gamma", "alpha"], None]
    assert imported(database, path, copy.slug, Request(ORTHORANK))[0].votes == Counter(duplicate=5)


def test_rankings_are_imported_by_the_columns_they_are_in(call: Caller, database: Engine, tmp_path: Path) -> None:
    rows = [
        {"shown": ["x", "y", "z"], "order": [["z"], ["x"]]},
        {"shown": '["x", "y"]', "order": '[["y"]]'},
        {"shown": None, "order": [["y"]]},
        {"shown": ["x", "y"], "order": "y"},
        {"shown": ["x", "y"], "order": [["z"]]},
        {"shown": ["x", "y", "z"], "order": [["z"], ["x"]]},
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    board = BoardCaller(call, f"menus-copy-{next(NUMBERS)}")
    request = Request(MAPPED, {"menu": "shown", "ranking": "order"})
    summary, rejects = imported(database, path, board.slug, request)
    assert summary.votes == Counter(created=3, rejected=1)
    assert [(line, reason.partition(":")[0]) for line, reason in sorted(rejects.told)] == [
        (3, "menu is empty"),
        (4, "ranking"),
        (5, "ranking.0.0"),
    ]
    stored = sorted(vote["ranking"] for vote in board.votes())
    assert stored == [[["y"]], [["z"], ["x"]], [["z"], ["x"]]]
    path.write_text("\n".join(json.dumps(row) for row in reversed(rows)))
    assert imported(database, path, board.slug, request)[0].votes == Counter(duplicate=3, rejected=1)


def test_an_assignment_is_answered_on_its_pair(make_board: MakeBoard) -> None:
    board = make_board(unit="context")
    sent = {"contexts": [{"id": "c"}], "mode": "one", "annotator": "a"}
    drawn = board("POST", "/acquire", sent).json()["assignments"][0]["id"]
    assert problem(rank(board, assignment=drawn), 422, "contradicts-assignment")["path"] == "menu"
    assert problem(rank(board, assignment=drawn, menu=None), 422, "contradicts-assignment")["path"] == "ranking"
    assert board("POST", "/votes", {"assignment": drawn, "outcome": "left"}).status_code == 201
