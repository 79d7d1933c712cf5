"""Imports into a real database: what gets in, what does not, and that doing it again adds nothing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from sqlalchemy import Engine, text

from app.db.engine import open_sessions
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board, BoardDraft, public_document
from app.domain.errors import DomainError
from app.domain.fields import EARLIEST
from app.formats.plan import Request
from app.formats.registry import ARENA, MAPPED, MTBENCH
from app.formats.rows import Place, UnusableFile
from app.services import boards
from app.services.imports import run as importing
from app.services.imports.batches import BatchWriter
from app.services.imports.orders import Order, Reject, Summary

SIDES = {"left": "a", "right": "b", "outcome": "w"}
NUMBERS = count()
Open = Callable[[], UnitOfWork]


class Watched:
    """Keeps what an import tells."""

    def __init__(self) -> None:
        self.rejects: list[Reject] = []
        self.position = self.size = 0

    def advanced(self, position: int, size: int) -> None:
        self.position, self.size = position, size

    def rejected(self, reject: Reject) -> None:
        self.rejects.append(reject)


class Loaded(NamedTuple):
    """What came of an import."""

    summary: Summary
    rejects: list[Reject]


class Loader:
    """Imports text into one board and looks at what is stored."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.open_work: Open = partial(UnitOfWork, open_sessions(engine))
        self.slug = f"import-{next(NUMBERS)}"
        self.path = folder / "votes"

    def __call__(self, content: str, request: Request | None = None, **order: Any) -> Loaded:
        self.path.write_text(content)
        watched = Watched()
        wanted = Order(self.path, self.slug, request or Request(MAPPED, SIDES), **order)
        summary = importing.run(self.open_work, wanted, watched)
        assert watched.position == watched.size == len(content.encode())
        return Loaded(summary, watched.rejects)

    @property
    def board(self) -> Board:
        with self.open_work() as work:
            return boards.find(work, self.slug)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """Rows of a query in which :board is the board's number."""
        with self.engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query), {"board": self.board.id})]

    def votes(self) -> list[tuple[Any, ...]]:
        return self.rows(
            """SELECT lefts.name, rights.name, outcome, voter, external_id, features FROM votes
            JOIN items lefts ON lefts.id = left_id JOIN items rights ON rights.id = right_id
            LEFT JOIN contexts ON contexts.id = context_id WHERE votes.board_id = :board ORDER BY votes.id"""
        )


@pytest.fixture
def load(database: Engine, tmp_path: Path) -> Loader:
    """Imports into a board of the test's own, which does not exist yet."""
    return Loader(database, tmp_path)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of three."""
    monkeypatch.setattr(importing, "BATCH", 3)


def test_a_new_board_is_as_the_file_suggests(load: Loader) -> None:
    fields = SIDES | {"context": "c", "voter": "v", "feature.n": "n", "feature.l": "l"}
    content = "a,b,w,c,v,n,l\nm1,m2,model_a,c1,v1,1,en\nm2,m1,tie,c1,v1,1,en\nm1,m3,both_bad,c2,,2,\n"
    summary, rejects = load(content, Request(MAPPED, fields), board_fields={"unit": "context"})
    assert (summary.new_board, summary.created, summary.complete, rejects) == (True, 3, True, [])
    board = public_document(load.board)
    assert (board["outcomes"], board["unit"], board["open_items"]) == ("arena", "context", True)
    assert [(each["name"], each["kind"]) for each in board["features"]] == [("l", "categorical"), ("n", "numeric")]
    assert sorted(load.votes(), key=repr) == [
        ("m1", "m2", 0, "v1", "c1", {"l": "en", "n": 1.0}),
        ("m1", "m3", 3, None, "c2", {"n": 2.0}),
        ("m2", "m1", 2, "v1", "c1", {"l": "en", "n": 1.0}),
    ]


def test_items_of_a_file_were_always_active(load: Loader) -> None:
    load("a,b,w\nm1,m2,tie\n")
    query = (
        "SELECT name, active_from, active_to FROM items JOIN item_spans ON item_id = items.id WHERE board_id = :board"
    )
    assert sorted(load.rows(query)) == [("m1", EARLIEST, None), ("m2", EARLIEST, None)]


@pytest.mark.usefixtures("small_batches")
def test_importing_again_adds_nothing(load: Loader) -> None:
    content = "a,b,w\n" + "m1,m2,tie\n" * 7 + "m2,m1,model_a\n" * 4
    assert load(content).summary.votes == Counter(created=11)
    again = load(content).summary
    assert (again.new_board, again.votes) == (False, Counter(duplicate=11))
    # A file that grew adds what is new.
    assert load(content + "m1,m2,tie\n").summary.votes == Counter(duplicate=11, created=1)
    assert len(load.votes()) == 12


@pytest.mark.usefixtures("small_batches")
def test_counts_are_their_copies(load: Loader) -> None:
    assert load(
        "a,b,l,t\nm1,m2,5,2\n", Request(MAPPED, {"left": "a", "right": "b", "count.left": "l", "count.tie": "t"})
    )
    counted = load("a,b,w,n\nm1,m2,a,2\nm1,m2,a,3\nm1,m2,tie,2\n", Request(MAPPED, SIDES | {"count": "n"}))
    written_out = load("a,b,w\n" + "m1,m2,a\n" * 5 + "m1,m2,tie\n" * 2)
    assert counted.summary.votes == written_out.summary.votes == Counter(duplicate=7)
    assert Counter(outcome for _, _, outcome, *_ in load.votes()) == {0: 5, 2: 2}


@pytest.mark.usefixtures("small_batches")
def test_what_is_refused_is_told_with_its_line_and_stops_nothing(load: Loader) -> None:
    content = "a,b,w,c,v,l\n"
    content += "m1,m2,tie,c1,v1,en\n"  # 2
    content += "m1,m2,better,c1,v1,en\n"  # 3: no outcome
    content += "m1,m2,tie\n"  # 4: too short
    content += "m1,m2,left,c1,v1,en\n"  # 5: a second vote
    content += "m2,m1,left,c1,v1,de\n"  # 6: another language
    content += "m2,m1,left,c1,v2,en\n"  # 7
    fields = SIDES | {"context": "c", "voter": "v", "feature.l": "l"}
    summary, rejects = load(content, Request(MAPPED, fields))
    assert (summary.created, summary.rejected, summary.bad_rows, summary.complete) == (2, 4, 2, False)
    assert sorted(reject.place.line for reject in rejects) == [3, 4, 5, 6]
    reasons = {reject.place.line: reject.reason for reject in rejects}
    assert "accepted: left" in reasons[3]
    assert "expected 6 columns, got 3" in reasons[4]
    assert "this voter has voted on this context and ordered pair" in reasons[5]
    assert "other features" in reasons[6]


def test_refused_copies_of_a_counted_row_are_told_once(load: Loader) -> None:
    load("a,b,w\nm1,m2,tie\n", board_fields={"open_items": False}, create_items=True)
    summary, rejects = load("a,b,w,n\nm1,x,tie,500\n", Request(MAPPED, SIDES | {"count": "n"}))
    assert summary.rejected == 500
    ((place, reason, times),) = rejects
    assert (place, times) == (Place(2), 500)
    assert "no item 'x'" in reason


def test_unknown_items_of_a_closed_board_need_a_word(load: Loader) -> None:
    with load.open_work() as work:
        boards.create(work, BoardDraft(slug=load.slug))
    content = "a,b,w\nm1,m2,tie\n"
    refused = load(content)
    assert (refused.summary.created, refused.summary.rejected) == (0, 1)
    assert "no item 'm1'" in refused.rejects[0].reason
    assert load(content, create_items=True).summary.created == 1


def test_nothing_is_written_where_a_column_is_missing(load: Loader) -> None:
    with pytest.raises(UnusableFile, match="no column 'w'"):
        load("a,b\nm1,m2\n")
    with pytest.raises(DomainError, match="no board"):
        assert load.board


@pytest.mark.parametrize(
    ("fields", "words"), [({"unit": "week"}, "unit"), ({"foo": 1}, "foo"), ({"segments": ["l"]}, "segment")]
)
def test_nothing_is_written_where_the_board_is_refused(load: Loader, fields: dict[str, Any], words: str) -> None:
    with pytest.raises(DomainError, match=words):
        load("a,b,w\nm1,m2,tie\n", board_fields=fields)
    with pytest.raises(DomainError, match="no board"):
        assert load.board


def test_an_existing_board_must_be_as_asked(load: Loader) -> None:
    content, fields = "a,b,w,l\nm1,m2,tie,en\n", SIDES | {"context": "a", "feature.l": "l"}
    load(content, Request(MAPPED, fields), board_fields={"outcomes": "ternary", "votes": {"revotes": True}})
    assert load(content, Request(MAPPED, fields), board_fields={"votes": {"revotes": True}}).summary.duplicate == 1
    with pytest.raises(UnusableFile, match="has other outcomes"):
        load(content, Request(MAPPED, fields), board_fields={"outcomes": "arena"})
    with pytest.raises(UnusableFile, match="declares no feature 'm'"):
        load(content, Request(MAPPED, fields | {"feature.m": "l"}))
    with pytest.raises(UnusableFile, match=r"feature 'l' of board .* is categorical"):
        load(content, Request(MAPPED, fields, feature_kinds={"l": "text"}))


def test_a_format_offers_features_and_the_board_takes_its_own(load: Loader) -> None:
    with load.open_work() as work:
        boards.create(work, BoardDraft(slug=load.slug, open_items=True))
    battle = {"question_id": "q1", "model_a": "m1", "model_b": "m2", "winner": "tie", "language": "en"}
    assert load(json.dumps(battle), Request(ARENA)).summary.created == 1
    assert load.votes() == [("m1", "m2", 2, None, "q1", {})]


def test_features_without_a_context_get_one_for_each_vote(load: Loader) -> None:
    load("a,b,w,l\n" + "m1,m2,tie,en\n" * 2, Request(MAPPED, SIDES | {"feature.l": "l"}))
    contexts = [(context, features) for *_, context, features in load.votes()]
    assert len({context for context, _ in contexts}) == 2
    assert [features for _, features in contexts] == [{"l": "en"}] * 2


def test_battles_that_were_not_anonymous_do_not_count(load: Loader) -> None:
    battle = {"model_a": "m1", "model_b": "m2", "winner": "tie", "anony": True}
    content = json.dumps([battle | {"question_id": "q1"}, battle | {"question_id": "q2", "anony": False}])
    summary, _ = load(content, Request(ARENA))
    assert (summary.created, summary.excluded) == (2, 1)
    assert load(content, Request(ARENA)).summary.excluded == 0
    query = """SELECT reason, external_id FROM exclusions JOIN votes ON votes.id = vote_id
    JOIN contexts ON contexts.id = context_id WHERE exclusions.board_id = :board"""
    assert load.rows(query) == [("not anonymous", "q2")]


def test_an_exclusion_cut_off_from_its_vote_is_made_up_for(load: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    battle = {"question_id": "q1", "model_a": "m1", "model_b": "m2", "winner": "tie", "anony": False}
    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "_exclude", lambda *_: None)
        load(json.dumps(battle), Request(ARENA))
    assert load(json.dumps(battle), Request(ARENA)).summary.excluded == 1


def test_mtbench_votes_and_judgements(load: Loader) -> None:
    content = "source,question_id,category,turn,model_a,model_b,winner,judge_id,judge_type\n"
    content += "human,81,writing,1,m1,m2,model_b,2,author\n"
    content += "gpt4_pair,81,writing,1,m1,m2,tie_inconsistent,65,gpt4_pair\n"
    content += "gpt4_pair,82,math,1,m1,m2,model_a,65,gpt4_pair\n"
    content += "gpt4_pair,82,writing,1,m2,m1,model_a,65,gpt4_pair\n"
    summary, rejects = load(content, Request(MTBENCH))
    assert (summary.votes, summary.judgements) == (Counter(created=1), Counter(created=2, rejected=1))
    assert [reject.place.line for reject in rejects] == [5]
    assert "other features" in rejects[0].reason
    query = """SELECT external_id, features, judge, probabilities FROM judgements
    JOIN contexts ON contexts.id = context_id WHERE judgements.board_id = :board ORDER BY 1"""
    assert load.rows(query) == [
        ("81/1", {"category": "writing"}, "gpt4_pair", {"left": 0.0, "right": 0.0, "tie": 1.0}),
        ("82/1", {"category": "math"}, "gpt4_pair", {"left": 1.0, "right": 0.0, "tie": 0.0}),
    ]
    again = load(content, Request(MTBENCH)).summary
    assert (again.votes, again.judgements) == (Counter(duplicate=1), Counter(duplicate=2, rejected=1))


def test_a_judgement_that_changed_is_refused(load: Loader) -> None:
    fields = SIDES | {"context": "c", "judge": "j"}
    load("a,b,w,c,j\nm1,m2,tie,c1,g\n", Request(MAPPED, fields, kind="judgements"))
    changed = load("a,b,w,c,j\nm1,m2,left,c1,g\nm1,m3,left,c1,g\n", Request(MAPPED, fields, kind="judgements"))
    assert changed.summary.judgements == Counter(created=1, rejected=1)
    assert [reject.place.line for reject in changed.rejects] == [2]


def test_a_judgement_that_is_refused_takes_no_other_of_its_line_along(load: Loader) -> None:
    fields = SIDES | {"context": "c", "judge": "j", "feature.l": "l"}
    sent = [("m2", "c1", "en"), ("m2", "c1", "de"), ("m3", "c1", "en"), ("m1", "c2", "en"), ("m2", "c2", "en")]
    rows = [{"a": "m1", "b": b, "w": "tie", "c": c, "j": "g", "l": lang} for b, c, lang in sent]
    summary, rejects = load(json.dumps(rows), Request(MAPPED, fields, kind="judgements"))
    assert (summary.judgements, summary.bad_rows) == (Counter(created=3, rejected=1), 1)
    assert sorted(str(reject.place) for reject in rejects) == ["line 1, element 2", "line 1, element 4"]


@pytest.mark.usefixtures("small_batches")
def test_a_stopped_import_is_completed_by_the_same_import(load: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    content = "a,b,w\n" + "m1,m2,tie\n" * 10
    written = count()
    write = BatchWriter.votes

    def fail_at_the_third(self: BatchWriter, batch: Any) -> list[Reject]:
        if next(written) == 2:
            raise ConnectionError
        return write(self, batch)

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "votes", fail_at_the_third)
        with pytest.raises(ConnectionError):
            load(content)
    assert len(load.votes()) == 6
    assert load(content).summary.votes == Counter(duplicate=6, created=4)


def test_a_file_that_breaks_is_imported_as_far_as_it_goes(load: Loader) -> None:
    record = json.dumps({"a": "m1", "b": "m2", "w": "tie"})
    summary, rejects = load(f"[{record}, {record}")
    assert (summary.created, summary.complete, rejects) == (1, False, [])
    assert summary.broken is not None
    assert "end of the JSON array" in summary.broken
