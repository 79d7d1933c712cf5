"""Requests that do not come in, over real sockets: nobody keeps a connection by sending a byte now and then."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from app.cli.serve import server_of
from app.main import create_app
from app.settings import ServerSettings, Settings
from tests.api.conftest import BoardCaller, ballot
from tests.api.serving import Reply, Wire

SECONDS = 1.0
"""That a request may take."""
MOST = SECONDS + 3
"""Looks are a second apart, on a machine that does other work."""
GOOD = json.dumps(ballot()).encode()
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def port(settings: Settings) -> Iterator[int]:
    app = create_app(settings)
    server = server_of(app, ServerSettings(port=1, request_seconds=SECONDS, log_level="warning"))
    server.config.port = 0
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


@pytest.fixture
def wire(port: int) -> Iterator[Wire]:
    wire = Wire(port)
    yield wire
    wire.close()


@pytest.fixture
def key(admin: dict[str, str]) -> str:
    return f"Authorization: {admin['Authorization']}"


@pytest.fixture
def board(make_board: Callable[..., BoardCaller]) -> BoardCaller:
    return make_board(public=True)


def head(method: str, path: str, *lines: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: h", *lines, "", ""]).encode()


def trickle(wire: Wire, first: bytes, rest: bytes) -> float:
    """Seconds until the server wants no more of what comes byte by byte."""
    began = time.monotonic()
    wire.send(first)
    for byte in rest:
        if wire.waits(0.1):
            return time.monotonic() - began
        wire.send(bytes([byte]))
    raise AssertionError("all of it was taken")


def too_late(reply: Reply) -> None:
    document = json.loads(reply.body)
    assert (reply.status, document["type"], document["status"]) == (408, "urn:orthorank:problem:request-timeout", 408)
    assert reply.header("content-type") == "application/problem+json"
    assert reply.header("connection") == "close"


@pytest.mark.parametrize(
    ("path", "chunked"), [("/votes", False), ("/votes", True), ("/votes/batch", True), ("/acquire", False)]
)
def test_bodies_that_trickle(wire: Wire, board: BoardCaller, key: str, path: str, chunked: bool) -> None:
    size = "Transfer-Encoding: chunked" if chunked else "Content-Length: 1000"
    first = head("POST", board.path + path, key, JSON, size) + b"3e8\r\n" * chunked
    assert SECONDS <= trickle(wire, first, b" " * 200) < MOST
    too_late(wire.reply())
    assert wire.ended()


def test_a_body_that_stops(wire: Wire, board: BoardCaller, key: str) -> None:
    began = time.monotonic()
    wire.send(head("POST", f"{board.path}/votes", key, JSON, f"Content-Length: {len(GOOD)}") + GOOD[:-1])
    too_late(wire.reply())
    assert SECONDS <= time.monotonic() - began < MOST
    assert board.votes() == []


def test_heads_that_trickle(wire: Wire) -> None:
    assert SECONDS <= trickle(wire, b"GET /healthz HTTP/1.1\r\nHost: h\r\nX-Long: ", b"x" * 200) < MOST
    too_late(wire.reply())
    assert wire.ended()


@pytest.mark.parametrize("nothing", [b"", b"\r\n" * 100])
def test_connections_without_a_request(wire: Wire, nothing: bytes) -> None:
    if nothing:
        assert SECONDS <= trickle(wire, b"", nothing) < MOST
    assert wire.ended()


@pytest.mark.parametrize("idle", [0.02, 0.3])
def test_a_request_after_others_has_its_own_time(wire: Wire, board: BoardCaller, key: str, idle: float) -> None:
    whole = head("POST", f"{board.path}/votes", key, JSON, f"Content-Length: {len(GOOD)}") + GOOD
    began = time.monotonic()
    while time.monotonic() - began < 4 * SECONDS:
        wire.send(whole[:-5], whole[-5:], pause=0.32 - idle)
        assert wire.reply().status == 201
        time.sleep(idle)
        wire.send(head("GET", "/healthz"))
        assert wire.reply().status == 200


def test_large_bodies_that_keep_coming_have_more_time(wire: Wire, board: BoardCaller, key: str) -> None:
    piece, pieces = b" " * 65_536, 30
    wire.send(head("POST", f"{board.path}/votes/batch", key, JSON, f"Content-Length: {pieces * len(piece)}"))
    wire.send(*[piece] * pieces, pause=0.15)
    assert wire.reply().status == 422


@pytest.mark.parametrize("more", [b"", b"GET /heal"])
def test_streams_go_on(wire: Wire, board: BoardCaller, more: bytes) -> None:
    wire.send(head("GET", f"{board.path}/stream") + more)
    while wire.line().strip() != "event: rankings":
        continue
    time.sleep(MOST)
    assert wire.goes_on()


def test_who_has_an_answer_and_still_sends_is_left(wire: Wire, board: BoardCaller) -> None:
    wire.send(head("POST", f"{board.path}/votes/batch", f"Content-Length: {2**30}"))
    assert wire.reply().status == 413
    assert trickle(wire, b" ", b" " * 200) < MOST
    assert wire.ended()


WEBSOCKET = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")


@pytest.mark.parametrize("other", [WEBSOCKET, ("Connection: Upgrade", "Upgrade: h2c")])
def test_other_protocols_are_not_spoken(port: int, board: BoardCaller, key: str, other: tuple[str, ...]) -> None:
    def say(request: bytes) -> tuple[Reply, bool]:
        wire = Wire(port)
        wire.send(request)
        reply = wire.reply()
        ended = wire.ended()
        wire.close()
        return reply, ended

    for path in ("/votes", "/votes/batch"):
        sent = head("POST", board.path + path, key, JSON, f"Content-Length: {len(GOOD)}", *other) + GOOD
        reply, ended = say(sent)
        assert (reply.status, ended) == (400, True)
        assert "Upgrade" in json.loads(reply.body)["detail"]
        assert reply.header("x-request-id")
    reply, ended = say(head("GET", f"{board.path}/rankings", *other))
    assert (reply.status, reply.header("connection"), ended) == (200, "close", True)
    assert board.votes() == []
