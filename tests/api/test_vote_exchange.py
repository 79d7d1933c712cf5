"""Votes past the server's machinery when things go wrong on either side."""

from __future__ import annotations

import gc
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.responses import Response

from app.api.door import PastTheFramework
from app.api.vote_door import VoteDoor
from app.api.vote_protocol import Exchange, VoteProtocol, protocol_of
from app.domain.errors import Missing
from app.services.ballot_box.box import BallotBox
from app.services.ballot_box.casts import Cast, Fate, Stored
from tests.api.serving import Reply, Wire, listening

BODY = b'{"left": "a", "right": "b", "outcome": "left"}'
HEAD = "POST /v1/boards/b/votes HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"


class Writer:
    """Writes what comes while it may, and remembers it."""

    def __init__(self, fate: Callable[[Cast], Fate]) -> None:
        self.may = threading.Event()
        self.may.set()
        self.seen: list[Cast] = []
        self._fate = fate

    def __call__(self, group: Sequence[Cast]) -> list[Fate]:
        self.seen += group
        assert self.may.wait(10)
        return [self._fate(cast) for cast in group]

    def await_votes(self, count: int) -> None:
        """Wait until so many came."""
        until(lambda: len(self.seen) >= count)


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 5
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextmanager
def served(
    writer: Writer,
    *,
    most: int = 100,
    most_bytes: Any = 10**6,
    patience: float = 10.0,
    short: bool = True,
    **options: Any,
) -> Iterator[int]:
    """Votes alone, on a port."""

    box = BallotBox(writer, most=most, most_bytes=most_bytes)
    door = VoteDoor(box, patience=patience)
    app = PastTheFramework(Response(status_code=404), [door])
    if short:
        options["http"] = type("Changed", (protocol_of(door),), options.pop("changes", {}))
    try:
        with listening(app, access_log=False, lifespan="off", **options) as port:
            yield port
    finally:
        writer.may.set()
        box.close()


def vote(*lines: str, size: int = len(BODY)) -> bytes:
    """A vote whose body may be only begun."""
    return (HEAD + "".join(f"{line}\r\n" for line in lines) + f"Content-Length: {size}\r\n\r\n").encode() + BODY


def refusing() -> Writer:
    return Writer(lambda _: Missing("as-told", ""))


def told(reply: Reply) -> tuple[int, str]:
    return reply.status, json.loads(reply.body)["type"].rpartition(":")[2]


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Callable[[], list[tuple[str, str, int]]]:
    """What was logged of requests."""
    caplog.set_level(logging.INFO, "orthorank.requests")

    def read() -> list[tuple[str, str, int]]:
        found = [line for record in list(caplog.records) for line in getattr(record, "lines", [])]
        return [(line["request_id"], f"{line['method']} {line['path']}", line["status"]) for line in found]

    return read


def test_a_full_box_and_a_long_wait(lines: Callable[[], Any]) -> None:
    writer = refusing()
    writer.may.clear()
    with served(writer, most=1, patience=0.3) as port:
        wires = [Wire(port) for _ in range(3)]
        for number, wire in enumerate(wires):
            wire.send(vote(f"X-Request-ID: v{number}"))
            if number == 0:
                writer.await_votes(1)
        replies = [wire.reply() for wire in wires]
        assert [wire.send(vote()) or wire.reply().status for wire in wires[2:]] == [503], "the connection goes on"
        for wire in wires:
            wire.close()
    full = sorted(told(reply) for reply in replies)
    assert full == [(503, "database-unavailable")] * 2 + [(503, "too-many-votes")]
    assert all(int(reply.header("retry-after") or 0) >= 1 for reply in replies)
    assert sorted(lines())[-3:] == [(f"v{number}", "POST /v1/boards/b/votes", 503) for number in range(3)]
    assert all(cast.abandoned for cast in writer.seen)


@pytest.mark.parametrize("short", [True, False])
def test_a_caller_goes_away(lines: Callable[[], Any], short: bool) -> None:
    writer = refusing()
    writer.may.clear()
    with served(writer, short=short) as port:
        for request in (vote("X-Request-ID: early", size=1000), vote("X-Request-ID: late")):
            wire = Wire(port)
            wire.send(request)
            if b"late" in request:
                writer.await_votes(1)
            wire.close()
        until(lambda: len(lines()) == 1)
        assert not writer.seen[0].abandoned, "the vote is stored all the same"
        writer.may.set()
        until(lambda: len(lines()) == 2)
        other = Wire(port)
        other.send(vote())
        assert told(other.reply()) == (404, "as-told")
        other.close()
    path = "POST /v1/boards/b/votes"
    assert lines()[:2] == [("early", path, 499), ("late", path, 404)]
    assert len(writer.seen) == 2


def test_a_stop_lets_votes_be_answered() -> None:
    writer = refusing()
    writer.may.clear()
    serving = served(writer)
    port = serving.__enter__()
    waiting, idle, coming = Wire(port), Wire(port), Wire(port)
    waiting.send(vote())
    coming.send(vote(size=len(BODY) + 1))
    writer.await_votes(1)
    stop = threading.Thread(target=serving.__exit__, args=(None, None, None))
    stop.start()
    assert idle.ended()
    coming.send(b" ")
    writer.may.set()
    for wire in (waiting, coming):
        reply = wire.reply()
        assert (*told(reply), reply.header("connection")) == (404, "as-told", "close")
        assert wire.ended()
    stop.join(5)
    assert not stop.is_alive()
    for wire in (waiting, idle, coming):
        wire.close()


def test_a_quiet_connection_is_closed_and_a_waiting_one_is_not() -> None:
    writer = refusing()
    with served(writer, timeout_keep_alive=0.5) as port:
        wire = Wire(port)
        wire.send(vote())
        wire.reply()
        writer.may.clear()
        wire.send(vote())
        writer.await_votes(2)
        time.sleep(0.8)
        writer.may.set()
        assert wire.reply().status == 404
        assert wire.ended()
        wire.close()


FORWARDED = {
    "nobody": (),
    "one": ("X-Forwarded-For: 1.2.3.4",),
    "through us": ("X-Forwarded-For: 1.2.3.4, 127.0.0.1",),
    "two lines": ("X-Forwarded-For: 1.2.3.4", "X-Forwarded-For: 5.6.7.8"),
    "a port": ("X-Forwarded-For: 1.2.3.4:80",),
    "empty": ("X-Forwarded-For:",),
    "not an address": ("X-Forwarded-For: there",),
    "scheme": ("X-Forwarded-Proto: https",),
}


@pytest.mark.parametrize(("trusted", "addresses"), [(None, 4), ("10.0.0.1", 1), ("*", 3)])
def test_a_vote_comes_from_where_the_proxy_says(trusted: str | None, addresses: int) -> None:
    found = []
    for short in (True, False):
        writer = refusing()
        with served(writer, short=short, forwarded_allow_ips=trusted) as port:
            wire = Wire(port)
            for said in FORWARDED.values():
                wire.send(vote(*said))
                wire.reply()
            wire.close()
        found.append([cast.address for cast in writer.seen])
    assert found[0] == found[1]
    assert len(set(found[0])) == addresses


def test_an_answer_that_cannot_be_written_is_the_fault_of_one(caplog: pytest.LogCaptureFixture) -> None:
    nothing: Any = None
    writer = Writer(lambda _: Stored(nothing, nothing, True) if len(writer.seen) == 1 else Missing("fine", ""))
    writer.may.clear()
    with served(writer) as port:
        wire = Wire(port)
        wire.send(vote("X-Request-ID: broken"))
        writer.await_votes(1)
        writer.may.set()
        assert told(wire.reply()) == (500, "internal")
        wire.send(vote())
        assert told(wire.reply()) == (404, "fine")
        wire.close()
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.getMessage() == "/v1/boards/b/votes was not answered"
    assert record.__dict__["fields"] == {"request_id": "broken"}


def test_answered_votes_do_not_wait_for_the_garbage_collector() -> None:
    gc.collect()
    gc.disable()
    try:
        writer = refusing()
        with served(writer) as port:
            wire = Wire(port)
            for body in [vote()] * 10 + [vote()[:-1] + b"x"] * 10:
                wire.send(body)
                wire.reply()
            writer.seen.clear()
            left = sum(isinstance(each, Exchange) for each in gc.get_objects())
            wire.close()
    finally:
        gc.enable()
    assert left <= 3, "that of the connection, and what a timer still sees"


@pytest.mark.parametrize("short", [True, False])
def test_a_box_that_is_broken(caplog: pytest.LogCaptureFixture, short: bool) -> None:
    writer = refusing()
    writer.may.clear()
    with served(writer, short=short, most_bytes=None) as port:
        wires = [Wire(port), Wire(port)]
        wires[0].send(vote())
        writer.await_votes(1)
        wires[1].send(vote(), vote())
        assert [told(wires[1].reply()) for _ in range(2)] == [(500, "internal")] * 2
        writer.may.set()
        assert told(wires[0].reply()) == (404, "as-told")
        for wire in wires:
            wire.close()
    assert {record.getMessage() for record in caplog.records} >= {"/v1/boards/b/votes was not answered"}


def test_a_caller_that_does_not_read_its_answers_gets_no_more_of_them() -> None:
    def full(protocol: VoteProtocol, transport: Any) -> None:
        VoteProtocol.connection_made(protocol, transport)
        protocol.pause_writing()
        protocol.loop.call_later(0.2, protocol.resume_writing)

    with served(refusing(), changes={"connection_made": full}) as port:
        began = time.monotonic()
        wire = Wire(port)
        wire.send(vote())
        assert told(wire.reply()) == (404, "as-told")
        assert time.monotonic() - began > 0.15
        wire.close()
