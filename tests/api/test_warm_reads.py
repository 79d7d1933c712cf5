"""Answers that are kept in the process: right, quick, and no longer kept than they hold."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from fastapi.testclient import TestClient
from httpx2 import Response
from redis import Redis
from sqlalchemy import Engine, event, text

from app.cache.connection import open_redis
from app.cache.news import RedisNews
from app.main import create_app
from app.settings import RedisSettings, Settings
from tests.api.conftest import BoardCaller, Caller, problem
from tests.refitting import Bench, ballots, cast

ITEMS = tuple(f"item-{number}" for number in range(8))
PATHS = ("/rankings", "/pairs", "/comparisons", "/top?k=2", "/diagnostics")


@pytest.fixture(scope="module")
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture
def board(make_board: Callable[..., BoardCaller], bench: Bench) -> BoardCaller:
    """A public board with a snapshot."""
    board = make_board(items=ITEMS, public=True)
    board.batch(*ballots(ITEMS, 300, seed=2))
    bench.refit(board.slug)
    return board


@pytest.fixture
def told(settings: Settings, board: BoardCaller, monkeypatch: pytest.MonkeyPatch) -> Iterator[BoardCaller]:
    """The board in a process that hears the news and never looks."""
    monkeypatch.setattr("app.api.watch.LOOK", 3600.0)
    with TestClient(create_app(settings)) as client:
        yield BoardCaller(Caller(client, board.call.headers), board.slug)


@contextmanager
def counting_statements() -> Iterator[list[str]]:
    """What any engine of this process executes meanwhile."""
    seen: list[str] = []

    def note(_: object, __: object, statement: str, *___: object) -> None:
        if "SELECT boards.id, slug, public" not in statement and "SELECT id FROM keys WHERE id" not in statement:
            seen.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    yield seen
    event.remove(Engine, "before_cursor_execute", note)


def look(client: TestClient) -> None:
    """Have the boards looked at now, not in a moment."""
    watch = client.app.state.ports.watch  # type: ignore[attr-defined]
    assert client.portal is not None
    client.portal.call(watch.look)
    client.portal.call(watch.settle)


def redis_commands(redis: Redis) -> int:
    """Commands that the server has executed for anybody, without those of looking."""
    found = redis.info("commandstats")
    return sum(int(stats["calls"]) for name, stats in found.items() if name not in ("cmdstat_info", "cmdstat_ping"))


@pytest.mark.parametrize("path", PATHS)
def test_a_warm_read_asks_neither_the_database_nor_redis(
    client: TestClient, board: BoardCaller, path: str, redis_url: str
) -> None:
    nobody = BoardCaller(Caller(client, {}), board.slug)
    nobody("GET", path)
    look(client)
    first = nobody("GET", path)
    with open_redis(redis_url) as redis, counting_statements() as statements:
        before = redis_commands(redis)
        again = [nobody("GET", path) for _ in range(40)]
        # What was counted here is settled every second meanwhile, in a few commands for all.
        assert redis_commands(redis) - before < len(again), "not one command a read"
    assert statements == []
    assert {answer.content for answer in again} == {first.content}
    assert {answer.headers["etag"] for answer in again} == {first.headers["etag"]}


def test_a_readers_key_is_looked_up_once(client: TestClient, board: BoardCaller) -> None:
    assert board("PATCH", "", {"public": False}).status_code == 200
    board("GET", "/rankings")
    look(client)
    board("GET", "/rankings")
    with counting_statements() as statements:
        assert board("GET", "/rankings").status_code == 200
    assert statements == []


def test_a_private_board_stays_closed(client: TestClient, board: BoardCaller) -> None:
    nobody = BoardCaller(Caller(client, {}), board.slug)
    assert nobody("GET", "/rankings").status_code == 200
    board("PATCH", "", {"public": False})
    problem(nobody("GET", "/rankings"), 401, "key-missing")
    assert board("GET", "/rankings").status_code == 200
    problem(nobody("GET", "/rankings"), 401, "key-missing")
    forger = BoardCaller(Caller(client, {"Authorization": "Bearer or_wrong"}), board.slug)
    problem(forger("GET", "/rankings"), 401, "unknown-key")


@pytest.mark.parametrize(("scopes", "other"), [(["votes"], False), (["read"], True)])
def test_a_key_that_does_not_reach_so_far_is_refused_while_others_read(
    call: Caller,
    client: TestClient,
    board: BoardCaller,
    make_board: Callable[..., BoardCaller],
    scopes: list[str],
    other: bool,
) -> None:
    board("PATCH", "", {"public": False})
    bound = make_board().slug if other else board.slug
    key = call("POST", "/v1/keys", {"scopes": scopes, "board": bound}).json()["key"]
    reader = BoardCaller(Caller(client, {"Authorization": f"Bearer {key}"}), board.slug)
    for _ in range(3):
        assert board("GET", "/rankings").status_code == 200
        assert reader("GET", "/rankings").status_code == 403


def test_a_revoked_key_is_refused_at_once(call: Caller, client: TestClient, board: BoardCaller) -> None:
    board("PATCH", "", {"public": False})
    made = call("POST", "/v1/keys", {"scopes": ["read"]}).json()
    reader = BoardCaller(Caller(client, {"Authorization": f"Bearer {made['key']}"}), board.slug)
    for _ in range(2):
        assert reader("GET", "/rankings").status_code == 200
    assert call("DELETE", f"/v1/keys/{made['id']}").status_code == 204
    problem(reader("GET", "/rankings"), 401, "unknown-key")


def test_a_key_revoked_behind_our_back_is_refused_within_seconds(
    call: Caller, client: TestClient, board: BoardCaller, database: Engine
) -> None:
    board("PATCH", "", {"public": False})
    made = call("POST", "/v1/keys", {"scopes": ["read"]}).json()
    reader = BoardCaller(Caller(client, {"Authorization": f"Bearer {made['key']}"}), board.slug)
    reader("GET", "/rankings")
    look(client)
    for _ in range(2):
        assert reader("GET", "/rankings").status_code == 200
    with database.begin() as connection:
        connection.execute(text("UPDATE keys SET revoked_at = now() WHERE id = :id"), {"id": made["id"]})
    until(lambda: reader("GET", "/rankings").status_code == 401)


def test_a_vote_shows(told: BoardCaller) -> None:
    assert told("GET", "/rankings").json()["votes_pending"] == 0
    assert told.vote(left=ITEMS[0], right=ITEMS[1], propensity=0.02).status_code == 201
    until(lambda: told("GET", "/rankings").json()["votes_pending"] == 1)


def test_a_refit_elsewhere_shows_by_the_news(told: BoardCaller, bench: Bench, redis_url: str) -> None:
    before = told("GET", "/rankings").json()
    with bench.work() as work:
        found = work.boards.find(told.slug)
    assert found is not None
    cast(bench, found, ballots(ITEMS, 50, seed=3))
    with open_redis(redis_url) as redis:
        snapshot = bench.refit(told.slug, news=RedisNews(redis))
    until(lambda: told("GET", "/rankings").json()["snapshot"] == str(snapshot.id))
    assert before["snapshot"] != str(snapshot.id)


def test_a_refit_shows_within_seconds_without_redis(settings: Settings, board: BoardCaller, bench: Bench) -> None:
    away = RedisSettings(url="unix:///nonexistent/redis.sock")
    alone = Settings(**{**{name: getattr(settings, name) for name in settings.__slots__}, "redis": away})
    with TestClient(create_app(alone)) as client:
        nobody = BoardCaller(Caller(client, {}), board.slug)
        assert nobody("GET", "/rankings").json()["votes"] == 300
        board.batch(*ballots(ITEMS, 50, seed=4))
        until(lambda: nobody("GET", "/rankings").json()["votes_pending"] == 50)
        bench.refit(board.slug)
        until(lambda: nobody("GET", "/rankings").json()["votes"] == 350)
        look(client)
        nobody("GET", "/rankings")
        with counting_statements() as statements:
            assert nobody("GET", "/rankings").json()["votes"] == 350
        assert statements == []


def test_variants_have_tags_of_their_own_and_only_the_one_in_question_is_known(
    client: TestClient, board: BoardCaller
) -> None:
    def get(**headers: str) -> Response:
        return client.get(board.path + "/rankings", headers=headers)

    for _ in range(2):  # made, then kept
        plain, zipped = get(**{"accept-encoding": "identity"}), get(**{"accept-encoding": "br, gzip"})
        assert "content-encoding" not in plain.headers
        assert zipped.headers["content-encoding"] == "gzip"
        assert zipped.content == plain.content
        assert int(zipped.headers["content-length"]) < len(plain.content) / 2
        assert plain.headers["etag"] != zipped.headers["etag"]
        assert plain.headers["vary"] == zipped.headers["vary"] == "Authorization, Accept-Encoding"
        assert "content-encoding" not in get(**{"accept-encoding": "gzip;q=0, *"}).headers
        for accepted, own, other in (("identity", plain, zipped), ("gzip", zipped, plain)):
            for known in (f'"other", W/{own.headers["etag"]}', "*"):
                unchanged = get(**{"if-none-match": known, "accept-encoding": accepted})
                assert (unchanged.status_code, unchanged.content) == (304, b"")
                assert unchanged.headers["etag"] == own.headers["etag"]
                assert unchanged.headers["cache-control"] == "public, no-cache"
            whole = get(**{"if-none-match": other.headers["etag"], "accept-encoding": accepted})
            assert (whole.status_code, whole.headers["etag"]) == (200, own.headers["etag"])


def test_a_list_of_tags_may_come_in_several_lines(client: TestClient, board: BoardCaller) -> None:
    lines = [("accept-encoding", "br"), ("accept-encoding", "gzip"), ("if-none-match", '"other"')]
    tag = client.get(board.path + "/rankings?level=0.8", headers=lines).headers["etag"]
    assert tag.endswith('-gzip"')
    for path in ("/rankings?level=0.8", "/rankings?level=0.80"):  # kept, and made
        assert client.get(board.path + path, headers=[*lines, ("if-none-match", tag)]).status_code == 304


def test_gzip_bytes_are_gzip(client: TestClient, board: BoardCaller) -> None:
    with client.stream("GET", board.path + "/rankings", headers={"accept-encoding": "gzip"}) as answer:
        raw = b"".join(answer.iter_raw())
    assert gzip.decompress(raw).startswith(b'{"votes_pending":')


def test_every_answer_has_a_request_id(client: TestClient, board: BoardCaller) -> None:
    names = {client.get(board.path + "/rankings").headers["x-request-id"] for _ in range(5)}
    assert len(names) == 5


def test_refusals_are_not_kept(board: BoardCaller) -> None:
    for _ in range(2):
        problem(board("GET", "/rankings?level=2"), 422, "bad-level")
        problem(board("GET", "/rankings?nonsense=1"), 422, "unknown-field")


def test_raw_voters_are_for_their_asker_alone(call: Caller, client: TestClient, board: BoardCaller) -> None:
    key = call("POST", "/v1/keys", {"scopes": ["read"]}).json()["key"]
    reader = BoardCaller(Caller(client, {"Authorization": f"Bearer {key}"}), board.slug)
    reader("GET", "/rankings")
    for _ in range(2):
        assert board("GET", "/diagnostics?raw_voters=true").status_code == 200
        assert reader("GET", "/diagnostics?raw_voters=true").status_code == 403


def test_warm_reads_are_counted_against_the_limit(settings: Settings, board: BoardCaller) -> None:
    from_settings = {name: getattr(settings, name) for name in settings.__slots__}
    limited = Settings(**{**from_settings, "limits": settings.limits.model_copy(update={"rate_limit": 60})})
    with TestClient(create_app(limited), client=("192.0.2.7", 1)) as client:
        reader = BoardCaller(Caller(client, {}), board.slug)
        assert [reader("GET", "/rankings").status_code for _ in range(200)].count(200) > 60
        until(lambda: reader("GET", "/rankings").status_code == 429)
        assert int(reader("GET", "/rankings").headers["retry-after"]) >= 1


def until(holds: Callable[[], bool], *, within: float = 5.0) -> None:
    """Wait for something to become true."""
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end, "it did not become true in time"
        time.sleep(0.02)
