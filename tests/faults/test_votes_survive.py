"""Every part of the running service is killed under votes: what was acknowledged is stored and counted once."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from app.embedded.state import open_state
from tests.faults.parts import Parts, kill_server
from tests.faults.poll import Poll


@pytest.fixture
def parts() -> Iterator[Parts]:
    state = open_state(Path("/tmp") / f"orthorank-test-{uuid4().hex[:8]}")
    parts = Parts(state)
    try:
        parts.start_servers()
        yield parts
    finally:
        parts.end()
        shutil.rmtree(state.root)


def kill_api(parts: Parts, poll: Poll) -> None:
    parts.kill("api")
    poll.check_stored()
    parts.start("api")
    poll.await_votes(30)


def kill_postgres(parts: Parts, poll: Poll) -> None:
    kill_server(parts.postgres)
    poll.await_503()
    parts.postgres.start()
    poll.await_votes(30, seconds=30)
    assert parts.runs("api"), "the API got over it by itself"
    poll.check_stored()


def kill_valkey(parts: Parts, poll: Poll) -> None:
    kill_server(parts.valkey)
    poll.await_votes(30)
    parts.valkey.start()
    poll.await_votes(10)


def kill_workers(parts: Parts, poll: Poll) -> None:
    parts.kill("worker", "beat")
    poll.await_votes(30)
    parts.start("worker", "beat")


def freeze_valkey(parts: Parts, poll: Poll) -> None:
    process = parts.valkey.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    poll.await_votes(30)
    process.send_signal(signal.SIGCONT)


def kill_everything(parts: Parts, poll: Poll) -> None:
    parts.kill("worker", "beat", "api")
    kill_server(parts.postgres)
    kill_server(parts.valkey)
    parts.postgres.start()
    parts.valkey.start()
    poll.check_stored()
    parts.start("worker", "beat", "api")
    poll.await_votes(30)


def survive(parts: Parts, faults: Sequence[Callable[[Parts, Poll], None]]) -> None:
    parts.start("api", "worker", "beat")
    poll = Poll(parts)
    poll.vote()
    for fault in faults:
        fault(parts, poll)
    assert sum(voter.cut for voter in poll.voters) >= len(poll.voters)
    poll.check_end()


def test_no_acknowledged_vote_is_lost_or_counted_twice(parts: Parts) -> None:
    survive(parts, [kill_workers, kill_api, kill_valkey, kill_postgres])


@pytest.mark.slow
def test_nor_is_one_after_many_deaths(parts: Parts) -> None:
    survive(parts, [kill_postgres, freeze_valkey, kill_everything, kill_api, kill_workers, kill_postgres, kill_valkey])
