"""Exported votes: who may see what, and that an import of an export gives the same board."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from app.db.engine import open_sessions
from app.db.unit_of_work import UnitOfWork
from app.formats.plan import Request
from app.formats.registry import ORTHORANK
from app.formats.writers import CONTAINERS, MEDIA_TYPES, Container
from app.services.imports.orders import Order, Summary
from app.services.imports.run import run
from tests.api.conftest import BoardCaller, Caller, problem
from tests.formats.reading import records_of
from tests.refitting import Bench, ballots

ITEMS = ("ada", "bell", "curie")
FEATURES = [
    {"name": "lang", "kind": "categorical"},
    {"name": "size", "kind": "numeric"},
    {"name": "prompt", "kind": "text"},
    {"name": "place", "kind": "vector", "dimensions": 2},
]
NUMBERS = count()
MakeBoard = Callable[..., BoardCaller]
COLUMNS = ("id", "context", "feature.lang", "feature.size", "feature.prompt", "feature.place", "offer", "left", "right")
COLUMNS += ("outcome", "voter", "voter_type", "propensity", "propensity_used", "created_at", "excluded")
COLUMNS += ("kind", "menu", "ranking")


class Silent:
    """Watches an import in which nothing may be rejected."""

    def advanced(self, position: int, size: int) -> None:
        pass

    def rejected(self, reject: object) -> None:
        raise AssertionError(reject)


def exported(board: BoardCaller, query: str = "") -> list[dict[str, Any]]:
    answer = board("GET", f"/votes/export?{query}")
    assert answer.status_code == 200, answer.text
    return [json.loads(line) for line in answer.text.splitlines()]


@pytest.fixture
def filled(make_board: MakeBoard) -> BoardCaller:
    """A board with votes of every shape: with and without a context, a voter, features; some excluded."""
    board = make_board(items=ITEMS, features=FEATURES, unit="context", votes={"revotes": True})
    features = {"lang": 'é, "x"\n', "size": 0.1, "prompt": "a\r\nb", "place": [0.5, -1e-7]}
    context = {"id": "p-1", "features": features}
    fates = board.batch(
        {"left": "ada", "right": "bell", "outcome": "left", "voter": "v1", "context": context, "offer": "o1"},
        {"left": "bell", "right": "ada", "outcome": "both_bad", "voter": "v2", "context": context, "propensity": 0.25},
        {"left": "curie", "right": "ada", "outcome": "tie", "created_at": "2026-01-02T03:04:05.678901Z"},
        {
            "left": "ada",
            "right": "curie",
            "outcome": "right",
            "voter": "v2",
            "voter_type": "llm",
            "context": {"id": "p-2"},
        },
        {"left": "ada", "right": "bell", "outcome": "tie", "voter": "v1", "context": context},
    )
    assert [fate["status"] for fate in fates] == ["created"] * 5
    board.sent = [fate["vote"] for fate in fates]
    for rule in ({"vote": fates[2]["vote"]}, {"filter": {"voter_type": "llm"}}):
        assert board("POST", "/exclusions", {**rule, "reason": "bot"}).status_code == 201
    return board


def imported(engine: Engine, folder: Path, content: bytes, slug: str, **fields: Any) -> Summary:
    path = folder / "export"
    path.write_bytes(content)
    request = Request(ORTHORANK, feature_kinds={"prompt": "text", "place": "vector"})
    return run(partial(UnitOfWork, open_sessions(engine)), Order(path, slug, request, fields), Silent())


def test_a_line_says_everything_about_a_vote(filled: BoardCaller) -> None:
    lines = {vote["id"]: vote for vote in exported(filled, "raw_voters=true")}
    first, second, third, fourth, fifth = (lines[vote] for vote in filled.sent)
    assert tuple(first) == COLUMNS
    assert first | {"id": "", "created_at": ""} == {
        "id": "",
        "context": "p-1",
        "feature.lang": 'é, "x"\n',
        "feature.size": 0.1,
        "feature.prompt": "a\r\nb",
        "feature.place": [0.5, -1e-7],
        "offer": "o1",
        "left": "ada",
        "right": "bell",
        "outcome": "left",
        "voter": "v1",
        "voter_type": "human",
        "propensity": None,
        "propensity_used": None,
        "created_at": "",
        "excluded": "superseded",
        "kind": "pair",
        "menu": None,
        "ranking": None,
    }
    assert (second["propensity"], second["outcome"], second["excluded"]) == (0.25, "both_bad", None)
    assert (third["created_at"], third["context"], third["excluded"]) == ("2026-01-02T03:04:05.678901Z", None, "bot")
    assert (fourth["feature.lang"], fourth["voter_type"], fourth["excluded"]) == (None, "llm", "bot")
    assert (fifth["excluded"], fifth["voter"]) == (None, "v1")


def test_voters_are_renamed_alike_on_one_board_only(make_board: MakeBoard, filled: BoardCaller) -> None:
    raw = [vote["voter"] for vote in exported(filled, "raw_voters=true")]
    renamed = [vote["voter"] for vote in exported(filled)]
    assert renamed == [vote["voter"] for vote in exported(filled, "format=jsonl")]
    assert len(set(zip(raw, renamed, strict=True))) == len(set(raw)) == len(set(renamed))
    assert set(raw) & set(renamed) == {None}
    other = make_board(items=ITEMS)
    other.batch({"left": "ada", "right": "bell", "outcome": "left", "voter": "v1"})
    assert exported(other)[0]["voter"] not in renamed


def test_voters_as_they_were_sent_are_for_admins(make_board: MakeBoard, nobody: Caller) -> None:
    board = make_board(public=True)
    board.vote(voter="secret")
    seen = nobody("GET", f"{board.path}/votes/export")
    assert seen.status_code == 200
    assert "secret" not in seen.text
    problem(nobody("GET", f"{board.path}/votes/export?raw_voters=true"), 401, "key-missing")
    scopes = {"scopes": ["read"]}
    reader = {"Authorization": f"Bearer {board.call('POST', '/v1/keys', scopes).json()['key']}"}
    assert nobody("GET", f"{board.path}/votes/export?raw_voters=true", headers=reader).status_code == 403


def test_a_private_board_needs_a_key(filled: BoardCaller, nobody: Caller) -> None:
    assert nobody("GET", f"{filled.path}/votes/export").status_code == 401
    assert filled("GET", "/votes/export?format=xlsx").status_code == 422


@pytest.mark.parametrize("container", CONTAINERS)
def test_every_container_says_the_same(filled: BoardCaller, tmp_path: Path, container: Container) -> None:
    answer = filled("GET", f"/votes/export?format={container}")
    assert answer.headers["content-type"] == MEDIA_TYPES[container]
    assert answer.headers["content-disposition"] == f'attachment; filename="{filled.slug}.{container}"'
    (tmp_path / "export").write_bytes(answer.content)
    records = [located.record for located in records_of(tmp_path / "export", COLUMNS)]
    assert [tuple(record) for record in records if isinstance(record, dict)] == [COLUMNS] * 5
    ids = [record["id"] for record in records if isinstance(record, dict)]
    assert ids == [vote["id"] for vote in exported(filled)]


@pytest.mark.parametrize("container", CONTAINERS)
def test_an_import_of_an_export_gives_the_same_board(
    call: Caller, filled: BoardCaller, database: Engine, tmp_path: Path, container: Container
) -> None:
    content = filled("GET", f"/votes/export?format={container}&raw_voters=true").content
    copy = BoardCaller(call, f"copy-{next(NUMBERS)}")
    fields = {"unit": "context", "votes": {"revotes": True}, "outcomes": "arena"}
    summary = imported(database, tmp_path, content, copy.slug, **fields)
    # The superseded vote is told by the vote that came after it.
    assert (summary.votes, summary.excluded) == (Counter(created=5), 2)
    by_id = {vote["id"]: vote for vote in exported(copy, "raw_voters=true")}
    assert by_id == {vote["id"]: vote for vote in exported(filled, "raw_voters=true")}
    assert imported(database, tmp_path, content, copy.slug, **fields).votes == Counter(duplicate=5)


def test_the_propensity_used_is_the_newest_snapshot_s(make_board: MakeBoard, database: Engine) -> None:
    board = make_board(items=ITEMS)
    board.batch(*ballots(ITEMS, 60, seed=5))
    assert {vote["propensity_used"] for vote in exported(board)} == {None}
    board("POST", "/exclusions", {"vote": exported(board)[0]["id"], "reason": "bot"})
    Bench(database).refit(board.slug)
    board.vote(left="ada", right="bell", propensity=1 / 6)
    first, *counted, late = exported(board)
    assert (first["propensity_used"], late["propensity_used"]) == (None, None)
    assert {vote["propensity"] for vote in counted} == {1 / 6}
    used = {(vote["left"], vote["right"]): vote["propensity_used"] for vote in counted}
    # The excluded vote took its offer with it: its pair was likelier than it looks, the others are likelier now.
    assert used.pop((first["left"], first["right"])) < 1 / 6
    assert all(pi > 1 / 6 for pi in used.values())


def test_an_empty_board_is_an_empty_file(make_board: MakeBoard) -> None:
    board = make_board()
    assert exported(board) == []
    header = board("GET", "/votes/export?format=csv").text
    assert header.startswith("id,context,offer,left,right,outcome,voter")
