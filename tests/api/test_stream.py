"""Server-sent events over real sockets."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from fastapi import FastAPI
from sqlalchemy import Engine

from app.api.streams import HEARTBEAT, WAITING, Stream, Streams
from app.cache.connection import open_redis
from app.cache.news import News, RedisNews, Silence
from app.db.versions import BoardVersion
from app.main import create_app
from app.settings import RedisSettings, Settings
from tests.api.conftest import BoardCaller, Caller, problem
from tests.api.serving import Listener, Told, listening
from tests.refitting import Bench, ballots

ITEMS = ("ada", "bell", "curie")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture
def news(redis_url: str) -> Iterator[News]:
    with open_redis(redis_url) as redis:
        yield RedisNews(redis)


@pytest.fixture(scope="module")
def app(settings: Settings) -> FastAPI:
    return create_app(settings)


@pytest.fixture(scope="module")
def port(app: FastAPI) -> Iterator[int]:
    with listening(app) as port:
        yield port


@pytest.fixture
def board(make_board: Callable[..., BoardCaller], bench: Bench) -> BoardCaller:
    """A public board with a snapshot."""
    board = make_board(items=ITEMS, public=True)
    board.batch(*ballots(ITEMS, 200, seed=5))
    bench.refit(board.slug)
    return board


@pytest.fixture
def listen(port: int, board: BoardCaller) -> Iterator[Callable[..., Listener]]:
    """Open a stream of the board."""
    opened: list[Listener] = []

    def open_(**headers: str) -> Listener:
        opened.append(Listener(port, f"{board.path}/stream", **headers))
        return opened[-1]

    yield open_
    for listener in opened:
        listener.close()


def told(listener: Listener) -> Told:
    event = listener.next()
    assert event is not None, "the stream ended"
    return event


def test_a_stream_begins_with_where_things_stand(board: BoardCaller, listen: Callable[..., Listener]) -> None:
    listener = listen()
    assert listener.answer.status == 200
    assert listener.answer.headers["content-type"].startswith("text/event-stream")
    event, ranking = told(listener), board("GET", "/rankings").json()
    assert event.kind == "rankings"
    assert event.data["board"] == board.slug
    assert event.data["snapshot"] == ranking["snapshot"]
    assert event.data["votes_through"][:19] == ranking["votes_through"][:19]


def test_a_refit_is_told_once_with_its_job(
    board: BoardCaller, bench: Bench, listen: Callable[..., Listener], news: News
) -> None:
    listener = listen()
    before = told(listener)
    board.batch(*ballots(ITEMS, 20, seed=6))
    snapshot = bench.refit(board.slug, news=news)
    events = [told(listener), told(listener)]
    assert [event.kind for event in events] == ["rankings", "refit"]
    assert {event.data["snapshot"] for event in events} == {str(snapshot.id)}
    assert {event.name for event in events} != {before.name}
    assert events[1].data["state"] == "succeeded"
    assert board("GET", "/rankings").json()["snapshot"] == str(snapshot.id), "whoever asks now gets it"
    assert bench.job(events[1].data["job"]).snapshot_id == snapshot.id
    board("PATCH", "", {"title": "Renamed"})
    assert told(listener).kind == "rankings", "and not of the refit again"


def test_a_failed_refit_is_told(board: BoardCaller, bench: Bench, listen: Callable[..., Listener], news: News) -> None:
    listener = listen()
    told(listener)
    with bench.work() as work:
        found = work.boards.find(board.slug)
    assert found is not None
    news.publish(found.id, "refit", job="j", state="failed", snapshot=None)
    event = told(listener)
    assert (event.kind, event.data["state"], event.data["job"]) == ("refit", "failed", "j")


def test_who_missed_nothing_is_told_nothing(
    board: BoardCaller, bench: Bench, listen: Callable[..., Listener], news: News
) -> None:
    last = told(listen()).name
    resumed = listen(**{"Last-Event-ID": last})
    with pytest.raises(TimeoutError):
        resumed.next(timeout=1.0)
    board.batch(*ballots(ITEMS, 20, seed=7))
    first = bench.refit(board.slug, news=news)
    board.batch(*ballots(ITEMS, 20, seed=8))
    second = bench.refit(board.slug, news=news)
    late = listen(**{"Last-Event-ID": last})
    event = told(late)
    assert event.data["snapshot"] == str(second.id) != str(first.id), "one event for all that was missed"
    with pytest.raises(TimeoutError):
        late.next(timeout=1.0)


@pytest.mark.parametrize("away", [False, True])
def test_a_refit_is_told_also_where_news_is_lost(
    settings: Settings, board: BoardCaller, bench: Bench, away: bool
) -> None:
    redis = RedisSettings(url="unix:///nonexistent/redis.sock") if away else settings.redis
    alone = Settings(**{**{name: getattr(settings, name) for name in settings.__slots__}, "redis": redis})
    with listening(create_app(alone)) as port:
        listener = Listener(port, f"{board.path}/stream")
        told(listener)
        board.batch(*ballots(ITEMS, 20, seed=9))
        snapshot = bench.refit(board.slug, news=Silence())
        events = [told(listener), told(listener)]
        listener.close()
    assert [(event.kind, event.data["snapshot"]) for event in events] == [
        ("rankings", str(snapshot.id)),
        ("refit", str(snapshot.id)),
    ]


def test_access_is_that_of_rankings(call: Caller, board: BoardCaller, listen: Callable[..., Listener]) -> None:
    key = call("POST", "/v1/keys", {"scopes": ["read"], "board": board.slug}).json()
    anonymous, holder = listen(), listen(Authorization=f"Bearer {key['key']}")
    told(anonymous)
    told(holder)
    board("PATCH", "", {"public": False})
    assert told(holder).kind == "rankings"
    assert anonymous.next() is None, "the board is not public any more"
    assert listen().answer.status == 401
    assert listen(Authorization="Bearer or_wrong").answer.status == 401
    call("DELETE", f"/v1/keys/{key['id']}")
    assert ends(holder), "the key was revoked"
    problem(call("GET", "/v1/boards/none/stream"), 404, "unknown-board")


@pytest.mark.parametrize(("scopes", "other"), [(["votes"], False), (["read"], True)])
def test_a_key_that_does_not_reach_so_far_listens_no_longer_than_the_public(
    call: Caller,
    board: BoardCaller,
    make_board: Callable[..., BoardCaller],
    listen: Callable[..., Listener],
    scopes: list[str],
    other: bool,
) -> None:
    bound = make_board().slug if other else board.slug
    key = call("POST", "/v1/keys", {"scopes": scopes, "board": bound}).json()["key"]
    listener = listen(Authorization=f"Bearer {key}")
    told(listener)
    board("PATCH", "", {"public": False})
    assert listener.next() is None, "it ends, and nothing is told of the private board"


def test_a_deleted_boards_streams_end(board: BoardCaller, listen: Callable[..., Listener]) -> None:
    listener = listen()
    told(listener)
    board("DELETE")
    assert ends(listener)


def test_who_goes_away_is_freed(app: FastAPI, listen: Callable[..., Listener]) -> None:
    streams = app.state.ports.streams
    before = streams.size
    listeners = [listen() for _ in range(20)]
    for listener in listeners:
        told(listener)
    assert streams.size == before + 20
    for listener in listeners:
        listener.close()
    end = time.monotonic() + 5
    while streams.size > before:
        assert time.monotonic() < end
        time.sleep(0.02)


def test_for_a_slow_listener_the_newest_events_wait() -> None:
    async def gathered() -> list[bytes]:
        stream = Stream(1, None)
        for number in range(1000):
            stream.push(b"%d" % number)
        stream.end()
        return [chunk async for chunk in stream.chunks()]

    assert asyncio.run(gathered()) == [b"%d" % number for number in range(1000 - WAITING, 1000)]


def test_a_stream_that_was_ended_is_told_nothing_more() -> None:
    async def gathered() -> list[bytes]:
        streams, version = Streams(), BoardVersion(7, "b", True, datetime(2020, 1, 1, tzinfo=UTC), None, 0, None, None)
        stream = streams.join(version, None, None)
        streams.tell(version._replace(public=False, live=3), [{"job": "j", "state": "failed", "snapshot": None}])
        streams.beat()
        return [chunk async for chunk in stream.chunks()]

    opening, event = asyncio.run(gathered())
    assert opening.startswith(b"retry")
    assert b'"version":0' in event


def test_where_something_waits_no_heartbeat_does() -> None:
    async def gathered() -> list[bytes]:
        stream = Stream(1, None)
        for _ in range(WAITING):
            stream.beat()
        stream.push(b"event")
        stream.beat()
        stream.end()
        return [chunk async for chunk in stream.chunks()]

    assert asyncio.run(gathered()) == [HEARTBEAT, b"event"]


def test_a_server_with_open_streams_stops_at_once(settings: Settings, board: BoardCaller, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    variables = {"ORTHORANK_DATABASE_URL": settings.database.url, "ORTHORANK_REDIS_URL": settings.redis.url}
    environment = {**os.environ, **variables, "ORTHORANK_DATA": str(tmp_path)}
    command = [str(Path(sys.executable).parent / "orthorank"), "api", "--port", str(port)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port)
            listeners = [Listener(port, f"{board.path}/stream") for _ in range(50)]
            for listener in listeners:
                told(listener)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            for listener in listeners:
                assert ends(listener)
                listener.close()
            process.wait(10)
            assert time.monotonic() - began < 4.5, "without waiting for the five seconds after which streams are cut"
        finally:
            process.kill()


def ends(listener: Listener) -> bool:
    """Whether the stream ends, after events at most."""
    while (event := listener.next()) is not None:
        assert event.kind in ("rankings", "refit")
    return True


def wait_for(port: int) -> None:
    """Wait for a server."""
    end = time.monotonic() + 120
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            assert time.monotonic() < end
            time.sleep(0.1)
