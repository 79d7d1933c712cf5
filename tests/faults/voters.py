"""Voters on connections of their own, who send each vote again, by its id, until it is acknowledged."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from http.client import HTTPConnection, HTTPException
from threading import Event, Thread
from typing import Any, NamedTuple
from uuid import uuid4

PACE = 0.04
"""Seconds between two votes of one voter."""
REPEATED = 0.05
"""Every so many acknowledged votes, as a share, are sent once more: the answer got lost on its way."""


class Answer(NamedTuple):
    """What the service said, and how soon it wants to be asked again."""

    status: int
    retry_after: str | None
    document: Any


def headers_of(key: str) -> dict[str, str]:
    """What comes with each request."""
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


def read_answer(connection: HTTPConnection) -> Answer:
    """The answer to the request that was sent last."""
    response = connection.getresponse()
    return Answer(response.status, response.getheader("Retry-After"), json.loads(response.read()))


def asked(port: int, method: str, path: str, body: object = None, *, key: str = "") -> Answer:
    """What the API says to a request on a connection of its own."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=20)) as connection:
        connection.request(method, path, json.dumps(body), headers_of(key))
        return read_answer(connection)


class Voter(Thread):
    """Votes without end until it is told to stop; then it still sees its last vote through.

    Parameters
    ----------
    size : votes of a request; 0: single ones.

    Attributes
    ----------
    latest : when the single vote that was acknowledged last was received.
    """

    def __init__(self, port: int, key: str, board: str, *, size: int, seed: int) -> None:
        super().__init__(daemon=True)
        self._path = f"/v1/boards/{board}/votes" + "/batch" * bool(size)
        self._headers = headers_of(key)
        self._connection = HTTPConnection("127.0.0.1", port, timeout=20)
        self._rng = random.Random(seed)
        self._size = size
        self.enough = Event()
        self.acknowledged: list[str] = []
        self.latest: datetime | None = None
        self.away: list[Answer] = []
        self.strange: list[Answer] = []
        self.cut = 0

    def run(self) -> None:
        while not self.enough.is_set():
            votes = [self._vote() for _ in range(max(1, self._size))]
            self._see_through(votes)
            if self._rng.random() < REPEATED:
                self._see_through(votes)
            time.sleep(PACE)
        self._connection.close()

    def _vote(self) -> dict[str, Any]:
        left, right = self._rng.sample(["ada", "bell", "curie"], 2)
        context = {"id": f"c-{self._rng.randrange(50)}"}
        outcome = self._rng.choice(["left", "left", "right", "tie"])
        who = {"voter": uuid4().hex, "propensity": 1 / 6}
        return {"id": str(uuid4()), "context": context, "left": left, "right": right, "outcome": outcome, **who}

    def _see_through(self, votes: Sequence[dict[str, Any]]) -> None:
        while not self._settled(votes, self._send({"votes": votes} if self._size else votes[0])):
            time.sleep(PACE)

    def _settled(self, votes: Sequence[dict[str, Any]], answer: Answer | None) -> bool:
        """Whether the votes need not be sent again."""
        if answer is None:
            self.cut += 1
            return False
        if answer.status == 503:
            self.away.append(answer)
            return False
        told = answer.document["results"] if self._size and answer.status == 200 else [answer.document]
        good = {"created", "duplicate"} if self._size else {votes[0]["id"]}
        if answer.status not in (200, 201) or any(each["status" if self._size else "id"] not in good for each in told):
            self.strange.append(answer)
        else:
            self.acknowledged += [vote["id"] for vote in votes]
            self.latest = self.latest if self._size else datetime.fromisoformat(answer.document["received_at"])
        return True

    def _send(self, document: Any) -> Answer | None:
        try:
            self._connection.request("POST", self._path, json.dumps(document), self._headers)
            return read_answer(self._connection)
        except (OSError, HTTPException):
            self._connection.close()
            return None
