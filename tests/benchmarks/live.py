"""How soon an acknowledged vote is in the rankings: `python -m tests.benchmarks.live [--seconds 30] [--rate 200]`.

It starts `orthorank up` on a board that has votes already, then sends single votes at a steady rate over several
connections, while refits of another board, and those that fall due on the board itself, run beside it. A reader asks
for the rankings all the while. A vote counts as visible with the first answer that holds as many votes as had been sent
when it was acknowledged. The bars: half of them within a second, 99 of 100 within three.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.benchmarks.acquire import Client, Server, service

ITEMS, CONNECTIONS, POLL = 20, 8, 0.05
MEDIAN, WORST = 1.0, 3.0
SIZES = {"b": 4_000, "beside": 8_000}
BATCH = 2_000
PATIENCE = 20.0
"""Seconds for the last vote to be read."""


@dataclass
class Seen:
    """What was sent, acknowledged and read, by the clock."""

    sent: int = 0
    acknowledged: list[tuple[float, int]] = field(default_factory=list)
    read: list[tuple[float, int]] = field(default_factory=list)
    refits: int = 0
    sending: int = 0

    def waits(self, before: int) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Seconds from each acknowledgement to the first answer that holds it."""
        times = np.array([at for at, _ in self.read])
        held = np.maximum.accumulate(np.array([votes - before for _, votes in self.read]))
        found = []
        for at, sent in self.acknowledged:
            first = int(np.searchsorted(held, sent))
            found.append(max(times[first] - at, 0.0) if first < times.size else np.inf)
        return np.array(found)


def main() -> None:
    """Measure and print; exit status 1 where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30, help="of sending")
    parser.add_argument("--rate", type=float, default=200, help="votes a second")
    asked = parser.parse_args()
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder, service(Path(folder)) as reached:
        call = Client(reached.port, reached.key)
        for slug, size in SIZES.items():
            prepare(call, slug, size)
        before = int(call("GET", "/v1/boards/b/rankings")["votes"])
        seen = asyncio.run(run(reached, asked.seconds, asked.rate))
        waits = seen.waits(before)
        p50, p99 = np.quantile(waits, [0.5, 0.99], method="higher")
        lasted = seen.acknowledged[-1][0] - seen.acknowledged[0][0]
        print(f"{waits.size} votes, {waits.size / lasted:.0f}/s of {asked.rate:g}/s; {seen.refits} refits beside")
        print(
            f"acknowledged -> in the rankings: p50 {p50:.2f} s, p99 {p99:.2f} s, longest {waits.max():.2f} s",
            flush=True,
        )
    sys.exit(bool(p50 > MEDIAN or p99 > WORST))


def prepare(call: Client, slug: str, size: int) -> None:
    """A board with votes and a snapshot."""
    features = [{"name": "lang", "kind": "categorical"}, {"name": "size", "kind": "numeric"}]
    call("POST", "/v1/boards", {"slug": slug, "features": features})
    for number in range(ITEMS):
        call("PUT", f"/v1/boards/{slug}/items/item-{number}", {})
    rng = random.Random(1)
    for start in range(0, size, BATCH):
        call("POST", f"/v1/boards/{slug}/votes/batch", {"votes": [vote(rng, start + n) for n in range(BATCH)]})
    await_job(call, call("POST", f"/v1/boards/{slug}/refit")["id"])


def vote(rng: random.Random, number: int) -> dict[str, Any]:
    """A vote on a prompt of its own."""
    left, right = rng.sample(range(ITEMS), 2)
    features = {"lang": rng.choice(("de", "en")), "size": rng.random()}
    return {
        "context": {"id": f"p{number}-{rng.random()}", "features": features},
        "left": f"item-{left}",
        "right": f"item-{right}",
        "outcome": "left" if rng.random() < 0.5 + 0.015 * (right - left) else "right",
        "propensity": 1 / (ITEMS * (ITEMS - 1)),
    }


def await_job(call: Client, job: str) -> None:
    """Wait until a refit ends."""
    while call("GET", f"/v1/jobs/{job}")["state"] in ("queued", "running"):
        time.sleep(0.2)


class Wire:
    """A connection of its own: a client that does more would take the cores which the service is measured on."""

    def __init__(self, reached: Server, streams: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
        self._head = f"Host: b\r\nAuthorization: Bearer {reached.key}\r\nContent-Type: application/json\r\n"
        self._reader, self._writer = streams

    @classmethod
    async def to(cls, reached: Server) -> Wire:
        """Connect."""
        return cls(reached, await asyncio.open_connection("127.0.0.1", reached.port))

    async def ask(self, method: str, path: str, document: Any = None) -> Any:
        """The document answered; nothing but success is expected."""
        body = b"" if document is None else json.dumps(document).encode()
        head = f"{method} /v1{path} HTTP/1.1\r\n{self._head}Content-Length: {len(body)}\r\n\r\n"
        self._writer.write(head.encode() + body)
        answered = (await self._reader.readuntil(b"\r\n\r\n")).lower()
        length = int(answered.partition(b"content-length: ")[2].partition(b"\r")[0])
        found = await self._reader.readexactly(length)
        assert answered.split(b" ", 2)[1].startswith(b"2"), found
        return json.loads(found)


async def run(reached: Server, seconds: float, rate: float) -> Seen:
    """Send, refit and read at the same time."""
    seen, end = Seen(), time.monotonic() + seconds
    wires = [await Wire.to(reached) for _ in range(CONNECTIONS + 2)]
    before = (await wires[-1].ask("GET", "/boards/b/rankings"))["votes"]
    senders = [send(wires[number], seen, end, (CONNECTIONS / rate, number)) for number in range(CONNECTIONS)]
    await asyncio.gather(*senders, read(wires[-1], seen, (end, before)), refit(wires[-2], seen, end))
    return seen


async def send(wire: Wire, seen: Seen, end: float, pace: tuple[float, int]) -> None:
    """One connection's share of the votes, at a steady pace."""
    pause, number = pace
    seen.sending += 1
    rng, due = random.Random(100 + number), time.monotonic() + pause * number / CONNECTIONS
    while due < end:
        await asyncio.sleep(max(due - time.monotonic(), 0))
        due += pause
        seen.sent += 1
        await wire.ask("POST", "/boards/b/votes", vote(rng, number))
        seen.acknowledged.append((time.monotonic(), seen.sent))
    seen.sending -= 1


async def read(wire: Wire, seen: Seen, until: tuple[float, int]) -> None:
    """Ask for the rankings until all votes are in them, or for a while after the last one."""
    end, before = until
    while True:
        answer = await wire.ask("GET", "/boards/b/rankings")
        now = time.monotonic()
        seen.read.append((now, answer["votes"]))
        if now > end and not seen.sending:
            through = answer["votes"] - before >= seen.sent
            if through or now > seen.acknowledged[-1][0] + PATIENCE:
                return
        await asyncio.sleep(POLL)


async def refit(wire: Wire, seen: Seen, end: float) -> None:
    """One refit of the board beside after the other, each with a vote more."""
    rng = random.Random(7)
    while time.monotonic() < end:
        await wire.ask("POST", "/boards/beside/votes", vote(rng, -1))
        job = (await wire.ask("POST", "/boards/beside/refit"))["id"]
        state = "queued"
        while state in ("queued", "running") and time.monotonic() < end:
            await asyncio.sleep(0.5)
            state = (await wire.ask("GET", f"/jobs/{job}"))["state"]
        seen.refits += state == "succeeded"


if __name__ == "__main__":
    main()
