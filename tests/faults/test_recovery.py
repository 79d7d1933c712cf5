"""`orthorank up` under steady votes, each of its parts killed in turn: within seconds all is well again.

Well: votes acknowledged after the death are in the ranking, and every part runs. `pytest -s` shows the seconds.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from tests.faults.parts import await_truth, kill_while, strain
from tests.faults.poll import Poll
from tests.faults.supervised import Supervised

BAR = 30.0
"""Seconds until all is well, where no process waits for a processor."""


@pytest.fixture
def service() -> Iterator[Supervised]:
    folder = Path(tempfile.mkdtemp(prefix="orthorank-up-", dir="/tmp"))
    folder.chmod(0o755)
    service = Supervised(folder / "state")
    try:
        service.start()
        yield service
    finally:
        service.end()
        shutil.rmtree(folder)


def seconds_to_recover(poll: Poll, service: Supervised, kill: Callable[[], object]) -> float:
    """From the death until a vote acknowledged after it is in the ranking, and all runs."""
    died, began = datetime.now(UTC), time.monotonic()
    kill()
    received = poll.await_vote_after(died, seconds=3 * BAR)
    await_truth(lambda: poll.shows(received) and service.runs(), seconds=3 * BAR)
    return time.monotonic() - began


def seconds_to_resume(poll: Poll, service: Supervised) -> float:
    """From the death of a worker in the middle of a refit until another one has taken the refit up."""
    job = poll.ask_refit()
    kill_while(service.up.family()["worker-refits"], lambda: 0 < poll.job(job)["progress"] < 0.7, seconds=60)
    began = time.monotonic()
    assert poll.job(job)["state"] == "running"
    await_truth(lambda: poll.attempts(job) > 1, seconds=3 * BAR)
    taken = time.monotonic() - began
    poll.await_job(job)
    return taken


@pytest.mark.slow
def test_whatever_is_killed_the_board_is_well_again_within_seconds(service: Supervised) -> None:
    poll = Poll(service)
    poll.vote()
    took = {}
    for name in ("api", "worker-live"):
        took[name] = seconds_to_recover(poll, service, partial(service.kill, name))
    took["a refit"] = seconds_to_resume(poll, service)
    for name in ("worker-refits", "beat", "valkey", "postgres"):
        took[name] = seconds_to_recover(poll, service, partial(service.kill, name))
    took["up"] = seconds_to_recover(poll, service, service.restart)
    print("seconds until all was well:", {name: round(seconds, 1) for name, seconds in took.items()})
    poll.check_end()
    shown = poll.counts()
    poll.refit()
    assert poll.counts() == shown, "a refit counts as the votes were counted one by one"
    assert max(took.values()) < BAR * strain(), took
