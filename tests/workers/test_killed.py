"""Workers are real processes here, and they are killed."""

from __future__ import annotations

import subprocess
import sys
import time
from datetime import UTC, datetime

import psutil
import pytest
from sqlalchemy import Engine, text

from app.domain.boards import DRAFT, Board
from app.domain.items import ItemDraft
from app.domain.parsing import parse
from app.services import boards, items, votes
from tests.faults.parts import await_truth, kill_while
from tests.refitting import FEATURES, Bench, ballots
from tests.workers.conftest import ROOT, Start

ITEMS = tuple(f"m{n}" for n in range(6))
SLUG = "killed"

FITTING = """
import numpy as np
from app.learners import learner
from app.services.refit import fitting
from app.services.refit.crew.processes import Processes
from app.stats.types import Covariates, Rule, Sample, Votes

fitting.WORTH_A_PROCESS = 0
n, rng = 20_000, np.random.default_rng(1)
left = rng.integers(0, 5, n)
one = np.ones(n)
ballots = Votes(np.arange(n), left, left + 1, rng.integers(0, 2, n), one, np.arange(n), one)
rule = Rule(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
sample = Sample(6, rule, ballots, np.arange(n), rng.integers(0, 5, n), np.arange(n))
print("fitting", flush=True)
covariates = Covariates(rng.normal(size=(n, 8)))
fitting.fit_folds(sample, covariates, ("davidson",), folds=5, crew=Processes(2), told=lambda _: None)
"""


def board_with_votes(bench: Bench, size: int) -> Board:
    with bench.work() as work:
        board = boards.create(work, parse(DRAFT, {"slug": SLUG, "features": FEATURES}))
    for name in ITEMS:
        with bench.work() as work:
            items.put(work, board, name, ItemDraft())
    with bench.work() as work:
        sent = votes.read_ballots(ballots(ITEMS, size, seed=1, contexts=size))
        votes.record(work, board, sent, now=datetime.now(UTC))
    return board


@pytest.mark.slow
def test_a_worker_killed_in_the_middle_of_a_refit_costs_seconds(database: Engine, start: Start) -> None:
    bench = Bench(database)
    board = board_with_votes(bench, 1500)
    with bench.work() as work:
        job = work.jobs.request(board.id)
        work.commit()
    beat, worker = start("beat"), start("worker")
    kill_while(worker, lambda: 0 < bench.job(job.id).progress < 0.7, seconds=90)
    assert bench.job(job.id).state == "running"
    start("worker")
    await_truth(lambda: bench.job(job.id).state == "succeeded", seconds=60)
    assert beat.poll() is None
    with bench.work() as work:
        snapshot = work.snapshots.newest(board.id)
        assert snapshot is not None
        assert snapshot.summary["votes"] == 1500
    with database.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM votes")).scalar_one() == 1500


@pytest.mark.slow
def test_fits_end_with_the_process_that_wanted_them() -> None:
    words = [sys.executable, "-c", FITTING]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"fitting\n"
        workers: list[psutil.Process] = []

        def started() -> bool:
            workers[:] = [c for c in psutil.Process(parent.pid).children() if "spawn_main" in " ".join(c.cmdline())]
            return len(workers) == 2

        await_truth(started, seconds=60)
        time.sleep(1)
        parent.kill()
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert alive == []
