"""Every part of the running service is killed under votes: what was acknowledged is stored and counted once."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest

from app.embedded.state import open_state
from tests.faults.parts import BIN, Parts, await_truth, kill_server
from tests.faults.voters import Voter

SLUG = "killed"
START = 120
"""Votes of the ranking that the later ones are added to."""


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


class Poll:
    """A board with a first ranking and voters who go on whatever happens."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        made = [BIN / "orthorank", "key", "create", "--scope", "admin"]
        found = subprocess.run(made, env=parts.environment, capture_output=True, check=True)
        self._key = found.stdout.decode().strip()
        self._ask("POST", "/v1/boards", {"slug": SLUG, "refit": {"votes": 1_000_000_000}})
        for item in ("ada", "bell", "curie"):
            self._ask("PUT", f"/v1/boards/{SLUG}/items/{item}", {})
        self.voters = [Voter(parts.port, self._key, SLUG, size=size, seed=size) for size in (0, 0, 0, 0, 7)]

    def vote(self) -> None:
        """Let them vote for a first ranking and go on."""
        for voter in self.voters:
            voter.start()
        self.await_votes(START)
        self._ask("POST", f"/v1/boards/{SLUG}/refit")
        await_truth(lambda: self.ranking()["snapshot"] is not None, seconds=60)

    def ranking(self) -> dict[str, object]:
        """What the board says."""
        found: dict[str, object] = self._ask("GET", f"/v1/boards/{SLUG}/rankings")
        return found

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        answer = self.parts.ask(method, path, body, key=self._key)
        assert answer.status < 300, answer
        return answer.document

    def acknowledged(self) -> set[str]:
        """The votes that need never be sent again."""
        return {vote for voter in self.voters for vote in list(voter.acknowledged)}

    def stored(self) -> Counter[str]:
        """The votes in the database."""
        with psycopg.connect(self.parts.postgres.url) as connection:
            return Counter(str(row[0]) for row in connection.execute("SELECT client_id FROM votes"))

    def await_votes(self, more: int, *, seconds: float = 30) -> float:
        """Seconds until so many more votes are acknowledged."""
        already = len(self.acknowledged())
        seconds = await_truth(lambda: len(self.acknowledged()) >= already + more, seconds=seconds)
        assert all(voter.strange == [] for voter in self.voters)
        return seconds

    def await_503(self) -> None:
        """Wait until each voter was told that the database is away, and when to come back."""
        heard = [len(voter.away) for voter in self.voters]

        def told() -> bool:
            return all(len(voter.away) > before for voter, before in zip(self.voters, heard, strict=True))

        await_truth(told, seconds=30)
        assert all(int(answer.retry_after or 0) >= 1 for voter in self.voters for answer in voter.away)

    def check_stored(self) -> None:
        """Nothing that was acknowledged is missing, nothing is there twice."""
        acknowledged, stored = self.acknowledged(), self.stored()
        assert acknowledged - set(stored) == set()
        assert set(stored.values()) == {1}

    def check_end(self) -> None:
        """Stop the votes: all of them are stored, and counted, once."""
        for voter in self.voters:
            voter.enough.set()
        for voter in self.voters:
            voter.join(30)
            assert not voter.is_alive()
            assert voter.strange == []
        self.check_stored()
        assert set(self.stored()) == self.acknowledged(), "each vote was seen through, so nothing else is there"
        whole = {"votes": len(self.acknowledged()), "votes_pending": 0}
        await_truth(lambda: {name: self.ranking()[name] for name in whole} == whole, seconds=60)
        time.sleep(1.5)
        assert {name: self.ranking()[name] for name in whole} == whole, "another sweep counts nothing twice"


def kill_api(poll: Poll) -> None:
    poll.parts.kill("api")
    poll.check_stored()
    poll.parts.start("api")
    poll.await_votes(30)


def kill_postgres(poll: Poll) -> None:
    kill_server(poll.parts.postgres)
    poll.await_503()
    poll.parts.postgres.start()
    poll.await_votes(30, seconds=30)
    assert poll.parts.runs("api"), "the API got over it by itself"
    poll.check_stored()


def kill_valkey(poll: Poll) -> None:
    kill_server(poll.parts.valkey)
    poll.await_votes(30)
    poll.parts.valkey.start()
    poll.await_votes(10)


def kill_workers(poll: Poll) -> None:
    poll.parts.kill("worker", "beat")
    poll.await_votes(30)
    poll.parts.start("worker", "beat")


def freeze_valkey(poll: Poll) -> None:
    process = poll.parts.valkey.process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    poll.await_votes(30)
    process.send_signal(signal.SIGCONT)


def kill_everything(poll: Poll) -> None:
    poll.parts.kill("worker", "beat", "api")
    kill_server(poll.parts.postgres)
    kill_server(poll.parts.valkey)
    poll.parts.postgres.start()
    poll.parts.valkey.start()
    poll.check_stored()
    poll.parts.start("worker", "beat", "api")
    poll.await_votes(30)


def survive(parts: Parts, faults: Sequence[Callable[[Poll], None]]) -> None:
    parts.start("api", "worker", "beat")
    poll = Poll(parts)
    poll.vote()
    for fault in faults:
        fault(poll)
    assert sum(voter.cut for voter in poll.voters) >= len(poll.voters)
    poll.check_end()


def test_no_acknowledged_vote_is_lost_or_counted_twice(parts: Parts) -> None:
    survive(parts, [kill_workers, kill_api, kill_valkey, kill_postgres])


@pytest.mark.slow
def test_nor_is_one_after_many_deaths(parts: Parts) -> None:
    survive(parts, [kill_postgres, freeze_valkey, kill_everything, kill_api, kill_workers, kill_postgres, kill_valkey])
