"""A board under votes, and what must be true of it whatever is killed."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from http.client import HTTPException
from typing import Any, Protocol

import psycopg

from app.embedded.postgres import PostgresServer
from tests.faults.parts import BIN, await_truth
from tests.faults.voters import Answer, Voter

SLUG = "killed"
START = 120
"""Votes of the ranking that the later ones are added to."""


class Service(Protocol):
    """What runs, however it was started."""

    port: int
    postgres: PostgresServer

    @property
    def environment(self) -> Mapping[str, str]:
        """What commands are told to find it."""
        ...

    def ask(self, method: str, path: str, body: object = None, *, key: str = "") -> Answer:
        """What the API says to a request on a connection of its own."""
        ...


class Poll:
    """A board with a first ranking and voters who go on whatever happens."""

    def __init__(self, service: Service) -> None:
        self.service = service
        made = [BIN / "orthorank", "key", "create", "--scope", "admin"]
        found = subprocess.run(made, env=service.environment, capture_output=True, check=True)
        self._key = found.stdout.decode().strip()
        self._ask("POST", "/v1/boards", {"slug": SLUG, "refit": {"votes": 1_000_000_000}})
        for item in ("ada", "bell", "curie"):
            self._ask("PUT", f"/v1/boards/{SLUG}/items/{item}", {})
        self.voters = [Voter(service.port, self._key, SLUG, size=size, seed=size) for size in (0, 0, 0, 0, 7)]

    def vote(self) -> None:
        """Let them vote for a first ranking and go on."""
        for voter in self.voters:
            voter.start()
        self.await_votes(START)
        self.refit()

    def ranking(self) -> dict[str, object]:
        """What the board says."""
        found: dict[str, object] = self._ask("GET", f"/v1/boards/{SLUG}/rankings")
        return found

    def counts(self) -> dict[str, int]:
        """The votes of each item in the ranking."""
        rows: Any = self.ranking()["rankings"]
        return {row["item"]: row["votes"] for row in rows}

    def await_vote_after(self, moment: datetime, *, seconds: float) -> datetime:
        """When the first vote was received that is acknowledged, and came in after a moment."""
        found: list[datetime] = []

        def came() -> bool:
            latest = (voter.latest for voter in self.voters)
            found[:] = [each for each in latest if each is not None and each > moment]
            return bool(found)

        await_truth(came, seconds=seconds)
        return min(found)

    def shows(self, received: datetime) -> bool:
        """Whether the ranking holds the votes received by then; not, where nobody answers."""
        try:
            answer = self.service.ask("GET", f"/v1/boards/{SLUG}/rankings", key=self._key)
        except (OSError, HTTPException):
            return False
        return answer.status == 200 and datetime.fromisoformat(answer.document["votes_through"]) >= received

    def ask_refit(self) -> str:
        """Ask for a refit; the id of its job."""
        return str(self._ask("POST", f"/v1/boards/{SLUG}/refit")["id"])

    def job(self, job: str) -> dict[str, Any]:
        """How far a refit has come."""
        found: dict[str, Any] = self._ask("GET", f"/v1/jobs/{job}")
        return found

    def refit(self) -> None:
        """Have all votes refitted."""
        self.await_job(self.ask_refit())

    def await_job(self, job: str) -> None:
        """Wait for the end of a refit."""
        await_truth(lambda: self.job(job)["state"] == "succeeded", seconds=60)

    def attempts(self, job: str) -> int:
        """How many times a refit was taken up."""
        with psycopg.connect(self.service.postgres.url) as connection:
            row = connection.execute("SELECT attempts FROM jobs WHERE id = %s", (job,)).fetchone()
            assert row is not None
            return int(row[0])

    def _ask(self, method: str, path: str, body: object = None) -> Any:
        answer = self.service.ask(method, path, body, key=self._key)
        assert answer.status < 300, answer
        return answer.document

    def acknowledged(self) -> set[str]:
        """The votes that need never be sent again."""
        return {vote for voter in self.voters for vote in list(voter.acknowledged)}

    def stored(self) -> Counter[str]:
        """The votes in the database."""
        with psycopg.connect(self.service.postgres.url) as connection:
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
