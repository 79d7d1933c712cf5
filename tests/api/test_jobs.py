"""Refits asked for over HTTP, and what becomes of the jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine, text

from app.services import jobs
from app.services.refit import run
from tests.api.conftest import BoardCaller, Caller, problem
from tests.conftest import RecordingQueue
from tests.refitting import Bench, ballots

ITEMS = ("ada", "bell", "curie", "dirac")
Make = Callable[..., BoardCaller]


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


def board_id(bench: Bench, board: BoardCaller) -> int:
    with bench.work() as work:
        found = work.boards.find(board.slug)
        assert found is not None
        return found.id


def sweep(bench: Bench, board: BoardCaller) -> bool:
    """Whether a sweep wakes a worker for the board."""
    queue = RecordingQueue()
    with bench.work() as work:
        jobs.sweep(work, queue)
    return board_id(bench, board) in queue.refits


def age(bench: Bench, statement: str, board: BoardCaller) -> None:
    """Change what no test can wait for."""
    with bench.engine.begin() as connection:
        connection.execute(text(statement), {"board": board_id(bench, board)})


def test_a_refit_is_accepted_waits_and_succeeds(make_board: Make, bench: Bench, queue: RecordingQueue) -> None:
    board = make_board(items=ITEMS)
    board.batch(*ballots(ITEMS, 50, seed=1))
    answer = board("POST", "/refit")
    assert answer.status_code == 202
    job = answer.json()
    assert (job["state"], job["error"]) == ("queued", None)
    assert queue.refits[-1] == board_id(bench, board)
    bench.refitter.serve(board_id(bench, board))
    done = board.call("GET", f"/v1/jobs/{job['id']}").json()
    assert (done["state"], done["progress"]) == ("succeeded", 1.0)
    assert done["snapshot"] == board("GET", "/rankings").json()["snapshot"]


def test_waiting_jobs_are_one(make_board: Make, bench: Bench) -> None:
    board = make_board(items=ITEMS)
    first, second = board("POST", "/refit").json(), board("POST", "/refit").json()
    assert first["id"] == second["id"]
    bench.refitter.serve(board_id(bench, board))
    assert board("POST", "/refit").json()["id"] != first["id"]


def test_jobs_are_for_those_who_may_read_the_board(make_board: Make, call: Caller, nobody: Caller) -> None:
    board, other = make_board(), make_board()
    job = board("POST", "/refit").json()["id"]
    key = call("POST", "/v1/keys", {"scopes": ["read"], "board": other.slug}).json()["key"]
    stranger = Caller(call.client, {"Authorization": f"Bearer {key}"})
    problem(stranger("GET", f"/v1/jobs/{job}"), 403, "other-board")
    problem(nobody("GET", f"/v1/jobs/{job}"), 401, "key-missing")
    problem(call("GET", f"/v1/jobs/{uuid4()}"), 404, "unknown-job")
    problem(stranger("POST", f"{other.path}/refit"), 403, "scope-missing")


def test_a_refit_that_fails_says_so_and_leaves_the_others_alone(
    make_board: Make, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = make_board(items=ITEMS), make_board(items=ITEMS)
    for board in (bad, good):
        board.batch(*ballots(ITEMS, 30, seed=2))

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("secret detail")

    with monkeypatch.context() as broken:
        broken.setattr(run, "refit", fail)
        job = bench.serve(bad.slug)
    assert job.state == "failed"
    assert job.error == run.UNEXPECTED
    assert bench.serve(good.slug).state == "succeeded"
    assert bench.serve(bad.slug).state == "succeeded"


def test_failed_refits_are_tried_again_on_new_votes_and_not_for_ever(
    make_board: Make, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = make_board(items=ITEMS, refit={"votes": 10})
    board.batch(*ballots(ITEMS, 20, seed=3))
    monkeypatch.setattr(run, "refit", lambda *_, **__: 1 / 0)
    tries = 0
    for seed in range(2 * jobs.MOST_FAILURES):
        if sweep(bench, board):
            bench.refitter.serve(board_id(bench, board))
            tries += 1
            assert not sweep(bench, board)
            age(bench, "UPDATE jobs SET finished_at = finished_at - INTERVAL '1 hour' WHERE board_id = :board", board)
        board.batch(*ballots(ITEMS, 1, seed=100 + seed))
    assert tries == jobs.MOST_FAILURES


def test_a_refit_is_due_after_so_many_votes(make_board: Make, bench: Bench) -> None:
    board = make_board(items=ITEMS, refit={"votes": 30})
    board.batch(*ballots(ITEMS, 29, seed=4))
    assert not sweep(bench, board)
    board.batch(*ballots(ITEMS, 1, seed=5))
    assert sweep(bench, board)
    bench.refitter.serve(board_id(bench, board))
    assert not sweep(bench, board)


def test_a_refit_is_due_after_so_many_seconds_with_a_vote_waiting(make_board: Make, bench: Bench) -> None:
    board = make_board(items=ITEMS, refit={"seconds": 1})
    assert not sweep(bench, board)
    board.batch(*ballots(ITEMS, 1, seed=6))
    patient = make_board(items=ITEMS, refit={"seconds": 3600})
    patient.batch(*ballots(ITEMS, 1, seed=6))
    with bench.engine.connect() as connection:
        connection.execute(text("SELECT pg_sleep(1.1)"))
    assert sweep(bench, board)
    assert not sweep(bench, patient)


def test_another_active_set_makes_a_refit_due(make_board: Make, bench: Bench) -> None:
    board = make_board(items=ITEMS)
    board.batch(*ballots(ITEMS, 20, seed=7))
    bench.refit(board.slug)
    assert not sweep(bench, board)
    board("PUT", "/items/euler", {})
    assert sweep(bench, board)


def test_another_choice_behind_the_numbers_asks_for_a_refit(
    make_board: Make, bench: Bench, queue: RecordingQueue
) -> None:
    board = make_board(items=ITEMS)
    before = len(queue.refits)
    assert board("PATCH", "", {"folds": 4}).status_code == 200
    assert len(queue.refits) == before
    board.batch(*ballots(ITEMS, 20, seed=9))
    bench.refit(board.slug)
    assert board("PATCH", "", {"title": "Other", "refit": {"votes": 40}}).status_code == 200
    assert len(queue.refits) == before
    for change in ({"acquisition": {"budget": 0.5}}, {"learner": "lightgbm"}):
        assert board("PATCH", "", change).status_code == 200
        assert queue.refits[-1] == board_id(bench, board)
    bench.refitter.serve(board_id(bench, board))
    policy = board("GET", "/policy").json()
    assert policy["budget"] == 0.5
    assert not sweep(bench, board)


def test_other_costs_make_a_refit_due(make_board: Make, bench: Bench) -> None:
    board = make_board(items=ITEMS)
    board("PUT", "/items/ada", {"label_cost": 2})
    assert not sweep(bench, board)
    board.batch(*ballots(ITEMS, 20, seed=8))
    first = bench.refit(board.slug)
    board("PUT", "/items/ada", {"label_cost": 2, "title": "Ada"})
    assert not sweep(bench, board)
    board("PUT", "/items/ada", {"label_cost": 2, "cost": 0.5})
    assert sweep(bench, board)
    bench.refitter.serve(board_id(bench, board))
    assert not sweep(bench, board)
    board("PUT", "/items/ada", {"label_cost": 3, "cost": 0.5})
    assert sweep(bench, board)
    bench.refitter.serve(board_id(bench, board))
    assert board("GET", "/rankings").json()["snapshot"] != str(first.id)


def test_judgements_make_a_refit_due_in_time(make_board: Make, bench: Bench) -> None:
    board = make_board(items=ITEMS, refit={"seconds": 60})
    judgement = {"judge": "j", "context": "p0", "left": "ada", "right": "bell", "probabilities": {"left": 1}}
    board("POST", "/contexts", {"contexts": [{"id": "p0"}]})
    assert board("POST", "/judgements", {"judgements": [judgement]}).status_code == 201
    assert not sweep(bench, board)
    board.batch(*ballots(ITEMS, 20, seed=8))
    bench.refit(board.slug)
    assert not sweep(bench, board)
    assert board("POST", "/judgements", {"judgements": [judgement | {"judge": "k"}]}).status_code == 201
    assert not sweep(bench, board)
    earlier = "jsonb_set(summary, '{marks,moment}', to_jsonb(now() - INTERVAL '1 hour'))"
    age(bench, f"UPDATE snapshots SET summary = {earlier} WHERE board_id = :board", board)
    assert not sweep(bench, board)
    age(bench, "UPDATE judgements SET created_at = now() - INTERVAL '61 s' WHERE board_id = :board", board)
    assert sweep(bench, board)


def test_a_job_whose_worker_is_gone_is_taken_up_again_some_times(make_board: Make, bench: Bench) -> None:
    board = make_board(items=ITEMS)
    job = board("POST", "/refit").json()["id"]
    number = board_id(bench, board)
    for _ in range(run.MOST_ATTEMPTS):
        assert sweep(bench, board)
        with bench.work() as work:
            assert [str(claim.id) for claim in work.jobs.claim(number)] == [job]
            work.commit()
    with bench.refitter.open_lease(number) as lease:
        assert lease is not None
        assert not sweep(bench, board)
    assert sweep(bench, board)
    bench.refitter.serve(number)
    found = board.call("GET", f"/v1/jobs/{job}").json()
    assert (found["state"], found["error"]) == ("failed", run.DIED)
