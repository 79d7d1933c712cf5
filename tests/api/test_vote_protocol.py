"""Votes past the server's machinery, over real sockets: nobody can tell, except by a clock."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import uuid4

import pytest
from fastapi import FastAPI

from app.api.vote_protocol import VoteProtocol, protocol_of
from app.cli.serve import server_of
from app.main import create_app
from app.settings import Settings
from tests.api.conftest import BoardCaller, ballot
from tests.api.serving import Reply, Wire, listening

CHANGING = re.compile(rb"[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\dT[^\"]*")
JSON = "Content-Type: application/json"
GOOD = json.dumps(ballot()).encode()
RANKING = {"menu": ["alpha", "beta", "gamma"], "ranking": [["beta"], ["alpha", "gamma"]]}
WAYS: list[str] = []
"""How each request was answered, in order."""


class Served(NamedTuple):
    """A server, a board of its application and a header that opens it."""

    port: int
    board: BoardCaller
    key: str

    def vote(self, body: bytes = GOOD, lines: Sequence[str] = (JSON,), **how: str) -> bytes:
        """The bytes of a vote."""
        return self.head(*lines, f"Content-Length: {len(body)}", **how) + body

    def chunked(self, body: bytes, lines: Sequence[str] = (JSON,), **how: str) -> bytes:
        """The same vote in two chunks, which is not for the short way."""
        head = self.head(*lines, "Transfer-Encoding: chunked", **how)
        chunks = [piece for piece in (body[:3], body[3:]) if piece]
        return head + b"".join([b"%x\r\n%b\r\n" % (len(piece), piece) for piece in chunks]) + b"0\r\n\r\n"

    def head(self, *lines: str, board: str | None = None, key: str | None = None, version: str = "1.1") -> bytes:
        """The head of a vote."""
        path = f"/v1/boards/{self.board.slug if board is None else board}/votes"
        key = f"Authorization: {self.key if key is None else key}"
        return "\r\n".join([f"POST {path} HTTP/{version}", "Host: h", key, *lines, "", ""]).encode()


@pytest.fixture(scope="module")
def app(settings: Settings) -> FastAPI:
    return create_app(settings)


@pytest.fixture(scope="module")
def port(app: FastAPI) -> Iterator[int]:
    class Telling(protocol_of(app.state.ports.votes)):  # type: ignore[misc]
        def _vote(self) -> Any:
            exchange = super()._vote()
            WAYS.append("long" if exchange is None else "short")
            return exchange

    with listening(app, http=Telling, access_log=False) as port:
        yield port


@pytest.fixture
def served(port: int, make_board: Callable[..., BoardCaller], admin: dict[str, str]) -> Served:
    WAYS.clear()
    features = [{"name": "lang", "kind": "categorical"}]
    return Served(port, make_board(features=features), admin["Authorization"])


@pytest.fixture
def wire(port: int) -> Iterator[Wire]:
    wire = Wire(port)
    yield wire
    wire.close()


def plain(reply: Reply) -> tuple[int, list[tuple[str, str]], bytes]:
    """An answer without what is another each time."""
    headers = [(name, "" if name in {"date", "x-request-id"} else value) for name, value in reply.headers]
    return reply.status, headers, CHANGING.sub(b"", reply.body)


REQUESTS: dict[str, tuple[int, bytes, dict[str, Any]]] = {
    "good": (201, GOOD, {}),
    "full": (201, json.dumps(ballot(context={"id": "c", "features": {"lang": "de"}}, propensity=0.5)).encode(), {}),
    "ranking": (201, json.dumps(RANKING).encode(), {}),
    "bad field": (422, json.dumps(ballot(id="1", colour="red")).encode(), {}),
    "unknown item": (422, json.dumps(ballot(left="nobody")).encode(), {}),
    "not JSON": (422, b'{"left": NaN}', {}),
    "half a character": (422, b'{"left": "\xc3"}', {}),
    "NUL": (422, b'{"left": "\\u0000"}', {}),
    "nothing": (422, b"", {}),
    "a list": (422, b"[]", {}),
    "text": (422, GOOD, {"lines": ("Content-Type: text/plain",)}),
    "no type": (422, GOOD, {"lines": ("Accept: */*",)}),
    "another JSON": (201, GOOD, {"lines": ("Content-Type: application/vote+json; charset=utf-8",)}),
    "two types": (201, GOOD, {"lines": (JSON, "Content-Type: text/plain")}),
    "two keys": (201, GOOD, {"lines": (JSON, "Authorization: Bearer or_wrong")}),
    "unknown key": (401, GOOD, {"key": "Bearer or_wrong"}),
    "odd key": (401, GOOD, {"key": "Bearer \xff"}),
    "unknown board": (404, GOOD, {"board": "nowhere"}),
    "odd board": (404, GOOD, {"board": ".."}),
}


@pytest.mark.parametrize(("status", "body", "how"), REQUESTS.values(), ids=REQUESTS.keys())
def test_both_ways_say_the_same(served: Served, wire: Wire, status: int, body: bytes, how: dict[str, Any]) -> None:
    wire.send(served.vote(body, **how))
    short = wire.reply()
    wire.send(served.chunked(body, **how))
    assert plain(short) == plain(wire.reply())
    assert short.status == status
    assert WAYS == ["short", "long"]
    assert len(served.board.votes()) == (2 if status == 201 else 0)


def test_a_vote_that_comes_again_is_the_vote_as_it_was(served: Served, wire: Wire) -> None:
    body = json.dumps(ballot(id=str(uuid4()))).encode()
    found = []
    for request in (served.vote(body), served.vote(body), served.chunked(body)):
        wire.send(request)
        found.append(wire.reply())
    assert [reply.status for reply in found] == [201, 200, 200]
    assert len({reply.body for reply in found}) == 1
    assert found[0].body == json.dumps(json.loads(found[0].body), separators=(",", ":")).encode()


def test_one_connection_for_votes_and_everything_else(served: Served, wire: Wire) -> None:
    look = f"GET {served.board.path}/votes HTTP/1.1\r\nHost: h\r\nAuthorization: {served.key}\r\n\r\n".encode()
    counts = []
    for request in (served.vote(), look, served.vote(), served.chunked(GOOD), served.vote(), look):
        wire.send(request)
        document = json.loads(wire.reply().body)
        counts.append(len(document["votes"]) if "votes" in document else None)
    assert counts == [None, 1, None, None, None, 4]
    assert WAYS == ["short", "long", "short", "long", "short", "long"]


@pytest.mark.parametrize("first", [GOOD, b"not JSON"], ids=["after a vote", "after a refusal"])
def test_requests_ahead_of_their_turn_are_answered_in_order(served: Served, wire: Wire, first: bytes) -> None:
    names = [f"n{number}" for number in range(4)]
    bodies = [first, json.dumps(ballot(left="nobody")).encode(), GOOD, GOOD]
    requests = [served.vote(body, [JSON, f"X-Request-ID: {name}"]) for body, name in zip(bodies, names, strict=True)]
    wire.send(b"".join(requests[:3]))
    replies = [wire.reply() for _ in range(3)]
    wire.send(requests[3])
    replies.append(wire.reply())
    assert [reply.header("x-request-id") for reply in replies] == names
    assert [reply.status for reply in replies] == [201 if first == GOOD else 422, 422, 201, 201]
    assert WAYS == ["short", "long", "long", "short"]


def test_bytes_come_as_they_like(served: Served, wire: Wire) -> None:
    request = served.vote()
    end = len(request) - len(GOOD)
    for cuts in ([end], [end - 2], [10, end - 30, end + 5, end + 6]):
        bounds = [0, *cuts, len(request)]
        wire.send(*[request[start:stop] for start, stop in pairwise(bounds)])
        assert wire.reply().status == 201
    assert WAYS == ["short"] * 3


def test_a_body_may_wait_for_the_word(served: Served, wire: Wire) -> None:
    wire.send(served.head(JSON, f"Content-Length: {len(GOOD)}", "Expect: 100-continue"))
    assert (wire.line(), wire.line()) == ("HTTP/1.1 100 Continue", "")
    wire.send(GOOD)
    assert wire.reply().status == 201


@pytest.mark.parametrize("body", [GOOD, b"not JSON"])
def test_the_last_request_of_a_connection(served: Served, wire: Wire, body: bytes) -> None:
    wire.send(served.vote(body, [JSON, "Connection: close"]) + served.vote())
    reply = wire.reply()
    assert (reply.status, reply.header("connection")) == (201 if body == GOOD else 422, "close")
    assert wire.ended()
    assert len(served.board.votes()) == (1 if body == GOOD else 0), "nothing is read after the last request"


def test_an_old_client(served: Served, wire: Wire) -> None:
    wire.send(served.head(JSON, f"Content-Length: {len(GOOD)}", "Connection: keep-alive", version="1.0") + GOOD)
    assert wire.reply().status == 201
    assert wire.ended(), "the server keeps no connection of theirs"
    assert WAYS == ["long"]


def test_a_change_of_protocol_is_for_the_server(served: Served, wire: Wire) -> None:
    wire.send(served.vote(GOOD, [JSON, "Connection: Upgrade", "Upgrade: h2c"]))
    assert wire.reply().status == 400, "the parser leaves the body to the other protocol"
    assert WAYS == ["long"]


def test_long_bodies_go_the_long_way(served: Served, wire: Wire) -> None:
    for size in (65_536, 65_537):
        wire.send(served.vote(GOOD.ljust(size)))
        assert wire.reply().status == 201
    wire.send(served.head(JSON, f"Content-Length: {2**30}"))
    reply = wire.reply()
    assert (reply.status, json.loads(reply.body)["type"]) == (413, "urn:orthorank:problem:body-too-large")
    assert WAYS == ["short", "long", "long"]


@pytest.mark.parametrize(
    "name", ["mine-1", "", "a b", "\xe9", "x" * 65, "a\tb"], ids=["good", "empty", "two", "odd", "long", "tab"]
)
def test_the_name_of_a_request(served: Served, wire: Wire, name: str) -> None:
    lines = [JSON, "X-Request-ID: " + name]
    head = "\r\n".join([f"POST {served.board.path}/votes HTTP/1.1", "Host: h", *lines, "Content-Length: 0", "", ""])
    wire.send(head.encode("latin-1"))
    told = wire.reply().header("x-request-id")
    assert told == name if name == "mine-1" else re.fullmatch("[0-9a-f]{32}", str(told))
    assert WAYS == ["short"]


@pytest.mark.parametrize("line", ["Content-Length: x", "Content-Length: 1\r\nContent-Length: 2", "Bad Name: 1"])
def test_what_is_not_HTTP_is_refused(served: Served, wire: Wire, line: str) -> None:
    wire.send(served.head(JSON, line) + GOOD)
    assert wire.reply().status == 400
    assert wire.ended()
    assert served.board.votes() == []


def test_only_votes_go_the_short_way(served: Served, wire: Wire) -> None:
    path = f"{served.board.path}/votes"
    for target in (
        f"{path}?x=1",
        f"{path}#x",
        f"{path}/",
        f"{path}/batch",
        f"/{path}",
        path.replace("board-", "%62oard-"),
    ):
        request = served.vote().replace(f"POST {path} ".encode(), f"POST {target} ".encode())
        wire.send(request, request.replace(b"POST", b"PUT"))
        wire.reply(), wire.reply()
    wire.send(served.vote().replace(b"POST", b"PUT"))
    assert wire.reply().status == 405
    assert set(WAYS) == {"long"}


def test_the_command_serves_votes_this_way(app: FastAPI, settings: Settings) -> None:
    config = server_of(app, settings.server).config
    assert isinstance(config.http, type)
    assert issubclass(config.http, VoteProtocol)
    assert config.ws == "none"
