"""Readers in a process of their own: `python -m tests.benchmarks.readers '<json>'`.

`{"port", "path", "seconds", "connections", "headers"}` asks for the same again and again over plain sockets, and
prints answers, their size and the quantiles of the waits. `{"port", "path", "streams"}` opens streams, says so, and
prints when each of them heard of which snapshot, once its input ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass, field
from typing import Any

LENGTH = b"content-length: "


@dataclass
class Heard:
    """Answers of all connections."""

    waits: list[float] = field(default_factory=list)
    statuses: set[int] = field(default_factory=set)
    size: int = 0


class Connection(asyncio.Protocol):
    """Asks again as soon as it is answered."""

    def __init__(self, request: bytes, until: float, heard: Heard, done: asyncio.Future[None]) -> None:
        self._request, self._until, self._heard, self._done = request, until, heard, done
        self._missing, self._body = 0, 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        if self._missing == 0:
            head = data.find(b"\r\n\r\n")
            assert head >= 0, "the head of an answer comes in one piece"
            at = data.find(LENGTH, 0, head)
            self._body = 0 if at < 0 else int(data[at + len(LENGTH) : data.find(b"\r", at)])
            self._missing = head + 4 + self._body
            self._heard.statuses.add(int(data[9:12]))
        self._missing -= len(data)
        if self._missing == 0:
            self._heard.waits.append(time.perf_counter() - self._began)
            self._heard.size = self._body
            self._ask()

    def _ask(self) -> None:
        self._began = time.perf_counter()
        if self._began > self._until:
            self._transport.close()
            self._done.set_result(None)
            return
        self._transport.write(self._request)


def request(path: str, headers: dict[str, str]) -> bytes:
    """The bytes of a GET."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in {"host": "here", **headers}.items())
    return f"GET {path} HTTP/1.1\r\n{lines}\r\n".encode()


async def ask(plan: dict[str, Any]) -> dict[str, Any]:
    """Ask for so many seconds."""
    loop, heard, ends = asyncio.get_running_loop(), Heard(), []
    question, until = request(plan["path"], plan.get("headers", {})), time.perf_counter() + plan["seconds"]
    for _ in range(plan["connections"]):
        done = loop.create_future()
        make = lambda done=done: Connection(question, until, heard, done)  # noqa: E731
        await loop.create_connection(make, "127.0.0.1", plan["port"])
        ends.append(done)
    await asyncio.gather(*ends)
    waits = sorted(heard.waits)
    p50, p99 = (1e3 * waits[int(share * (len(waits) - 1))] for share in (0.5, 0.99))
    found = {"answers": len(heard.waits), "p50": p50, "p99": p99}
    return {**found, "statuses": sorted(heard.statuses), "size": heard.size}


async def listen(plan: dict[str, Any]) -> dict[str, list[float]]:
    """Hear of snapshots until the input ends."""
    arrivals: dict[str, list[float]] = {}
    streams = [await asyncio.open_connection("127.0.0.1", plan["port"]) for _ in range(plan["streams"])]
    opened = asyncio.Semaphore(0)
    tasks = [asyncio.create_task(_hear(*stream, plan["path"], arrivals, opened)) for stream in streams]
    for _ in streams:
        await opened.acquire()
    print("open", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    for task in tasks:
        task.cancel()
    return arrivals


async def _hear(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    path: str,
    arrivals: dict[str, list[float]],
    opened: asyncio.Semaphore,
) -> None:
    writer.write(request(path, {}))
    kind = ""
    while line := await reader.readline():
        if line.startswith(b"event: "):
            kind = line[7:-1].decode()
        elif line.startswith(b"data: ") and kind == "rankings":
            snapshot = json.loads(line[6:])["snapshot"]
            arrivals.setdefault(snapshot, []).append(time.time())
            opened.release()


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    print(json.dumps(asyncio.run((listen if "streams" in asked else ask)(asked))))
