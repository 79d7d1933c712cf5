"""What comes while a refit reads is in it, or makes the next one another: fingerprints and dates go by its marks."""

from __future__ import annotations

import time
from threading import Event, Thread

import pytest
from sqlalchemy import Engine, text

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.contexts import ContextDraft, Wanted
from app.domain.judgements import JudgementDraft
from app.services import contexts, judgements
from tests.refitting import Bench, ballots, cast, features_of, new_board


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def voted(bench: Bench, **fields: object) -> Board:
    board = new_board(bench, refit={"seconds": 60}, **fields)
    cast(bench, board, ballots(("ada", "bell", "curie", "dirac"), 80, seed=1, contexts=40))
    return board


def register(bench: Bench, board: Board, *numbers: int) -> None:
    drafts = [ContextDraft(id=f"p{n}", features=features_of(n), offered=True) for n in numbers]
    with bench.work() as work:
        contexts.register(work, board, drafts)


def judge(work: UnitOfWork, board: Board, name: str = "j") -> None:
    draft = JudgementDraft(judge=name, context="p0", left="ada", right="bell", probabilities={"left": 1.0})
    assert [each.status for each in judgements.record(work, board, [draft])] == ["created"]


def due(bench: Bench, board: Board) -> bool:
    with bench.work() as work:
        return board.id in work.jobs.due(attempts=5)


def age(bench: Bench, board: Board, table: str, column: str) -> None:
    """Date what no test can wait for: after the last marks, and long ago."""
    marks = "jsonb_set(summary, '{marks,moment}', to_jsonb((summary -> 'marks' ->> 'moment')::timestamptz - {ago}))"
    ago = "INTERVAL '1 hour'"
    with bench.engine.begin() as connection:
        for statement in (
            f"UPDATE snapshots SET summary = {marks.replace('{ago}', ago)} WHERE board_id = :board",
            f"UPDATE {table} SET {column} = {column} - {ago} WHERE board_id = :board",
        ):
            connection.execute(text(statement), {"board": board.id})


def test_contexts_offered_after_the_marks_are_in_the_next_refit(bench: Bench) -> None:
    board = voted(bench, unit="context")
    first = bench.refit_while(board.slug, lambda: register(bench, board, 100, 101))
    second = bench.refit(board.slug)
    assert second.summary["rows"] == first.summary["rows"] + 2
    assert bench.refit(board.slug).id == second.id


def test_offers_made_after_the_marks_are_in_the_next_refit(bench: Bench) -> None:
    board = voted(bench, unit="context")

    def offer() -> None:
        with bench.work() as work:
            work.contexts.offer(board.id, {"p0": Wanted(features_of(0), offered=True)}, source="acquire")
            work.commit()

    first = bench.refit_while(board.slug, offer)
    second = bench.refit(board.slug)
    assert second.id != first.id
    assert bench.refit(board.slug).id == second.id


def test_offered_contexts_are_due_in_time_where_they_are_rows(bench: Bench) -> None:
    of_contexts, of_battles = voted(bench, unit="context"), voted(bench)
    for board in (of_contexts, of_battles):
        first = bench.refit(board.slug)
        register(bench, board, 100)
        assert not due(bench, board)
        age(bench, board, "contexts", "offered_at")
        assert due(bench, board) == (board is of_contexts)
        assert (bench.refit(board.slug).id == first.id) == (board is of_battles)
        assert not due(bench, board)


def test_judgements_that_come_after_the_marks_are_due_and_in_the_next_refit(bench: Bench) -> None:
    board = voted(bench)

    def late() -> None:
        with bench.work() as work:
            judge(work, board)

    assert bench.refit_while(board.slug, late).summary["judges"] == []
    assert not due(bench, board)
    age(bench, board, "judgements", "created_at")
    assert due(bench, board)
    assert said(bench.refit(board.slug).summary) == ["j"]
    assert not due(bench, board)


def test_a_refit_waits_for_judgements_on_their_way(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    board, work, written = voted(bench), bench.work(), Event()
    commit = work.commit

    def late() -> None:
        written.set()
        time.sleep(0.5)
        commit()

    monkeypatch.setattr(work, "commit", late)

    def send() -> None:
        with work:
            judge(work, board)

    thread = Thread(target=send)
    thread.start()
    assert written.wait(30)
    found = bench.refit(board.slug)
    thread.join()
    assert said(found.summary) == ["j"]


def said(summary: dict[str, list[dict[str, object]]]) -> list[object]:
    """Names of the judges that a refit read of."""
    return sorted(str(each["name"]) for part in ("judges", "judges_left_out") for each in summary[part])
