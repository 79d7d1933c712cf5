"""Sends votes over plain connections as fast as they are answered: `python -m tests.benchmarks.load '<json>'`.

It prints one JSON document: seconds, answers by status, latencies in milliseconds and its own processor seconds.
Requests are written beforehand, so that while it measures it only sends bytes and looks for the end of an answer.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

import numpy as np
import uvloop

LENGTH = b"content-length: "


@dataclass(frozen=True)
class Plan:
    """What to send: `size` votes a request (0: single votes), `total` requests over all connections."""

    port: int
    key: str
    total: int
    connections: int
    path: str = ""
    size: int = 0
    items: int = 2
    contexts: int = 1
    seed: int = 0
    new_contexts: bool = False


@dataclass
class Tally:
    """What came back."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    last: bytes = b""


class Connection(asyncio.Protocol):
    """Sends the next request as soon as the last one is answered."""

    def __init__(self, requests: Iterator[bytes], tally: Tally, done: asyncio.Future[None]) -> None:
        self._requests = requests
        self._tally = tally
        self._done = done
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._send()

    def _send(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self._transport.close()
            return
        self._began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(b"\r\n\r\n")
        if head < 0:
            return
        start = self._received.find(LENGTH) + len(LENGTH)
        length = int(self._received[start : self._received.find(b"\r", start)])
        if len(self._received) >= head + 4 + length:
            self._tally.seconds.append(time.perf_counter() - self._began)
            self._tally.statuses[int(self._received[9:12])] += 1
            self._tally.last, self._received = self._received, b""
            self._send()

    def connection_lost(self, error: Exception | None) -> None:
        del error
        if not self._done.done():
            self._done.set_result(None)


def vote(rng: random.Random, plan: Plan) -> dict[str, Any]:
    """A vote with everything that a row can have."""
    left, right = rng.sample(range(plan.items), 2)
    context = f"new-{rng.getrandbits(64):x}" if plan.new_contexts else f"p-{rng.randrange(plan.contexts)}"
    features = {"language": "en", "length": 120.0} if plan.new_contexts else None
    return {
        "id": str(UUID(int=rng.getrandbits(128))),
        "context": {"id": context, **({} if features is None else {"features": features})},
        "left": f"item-{left}",
        "right": f"item-{right}",
        "outcome": rng.choice(["left", "right", "tie", "both_bad"]),
        "voter": f"u-{rng.getrandbits(64):x}",
        "propensity": 1 / plan.items / (plan.items - 1),
    }


def requests(plan: Plan) -> list[bytes]:
    """The requests, ready to be written."""
    rng = random.Random(plan.seed)
    lines = f"POST {plan.path} HTTP/1.1\r\nHost: b\r\nAuthorization: Bearer {plan.key}\r\n"
    lines += "Content-Type: application/json\r\n"
    found = []
    for _ in range(plan.total):
        document = {"votes": [vote(rng, plan) for _ in range(plan.size)]} if plan.size else vote(rng, plan)
        body = json.dumps(document).encode()
        found.append(f"{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return found


async def run(plan: Plan) -> dict[str, Any]:
    """Send all and count."""
    loop, tally, waiting = asyncio.get_running_loop(), Tally(), iter(requests(plan))
    began, spent = time.perf_counter(), time.process_time()
    ends = []
    for _ in range(plan.connections):
        done = loop.create_future()
        await loop.create_connection(lambda done=done: Connection(waiting, tally, done), "127.0.0.1", plan.port)  # type: ignore[misc]
        ends.append(done)
    await asyncio.gather(*ends)
    seconds = time.perf_counter() - began
    p50, p99 = np.quantile(tally.seconds, [0.5, 0.99]) * 1e3
    last = tally.last.partition(b"\r\n\r\n")[2][:300].decode()
    return {
        "seconds": seconds,
        "cpu": time.process_time() - spent,
        "statuses": tally.statuses,
        "p50": p50,
        "p99": p99,
        "last": last,
    }


if __name__ == "__main__":
    print(json.dumps(uvloop.run(run(Plan(**json.loads(sys.argv[1]))))))
