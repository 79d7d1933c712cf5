"""Rate limits, and what happens without Redis or without the database."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from redis import Redis
from sqlalchemy import Engine, text

from app.cache.connection import open_redis
from app.cache.limits import Quota, RateLimiter
from app.cache.tally import Tally
from app.db.engine import open_engine, open_sessions
from app.db.unit_of_work import UnitOfWork
from app.domain.keys import KeyDraft
from app.main import create_app
from app.services import keys
from app.settings import DatabaseSettings, LimitSettings, RedisSettings, Settings, VoteSettings
from tests.api.conftest import BoardCaller, Caller, ballot, problem

Serve = Callable[[Settings], AbstractContextManager[TestClient]]
NOWHERE = "unix:///nonexistent/redis.sock"
OTHERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
"""
TWENTY = range(15, 21)
"""Seconds left of twenty on a machine that does other work."""


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    client = open_redis(redis_url)
    client.flushdb()
    yield client
    client.close()


@contextmanager
def serve(settings: Settings) -> Iterator[TestClient]:
    with TestClient(create_app(settings), raise_server_exceptions=False) as client:
        yield client


def test_a_minutes_worth_passes_at_once_and_no_more(redis: Redis) -> None:
    limiter = RateLimiter(redis, per_minute=20)
    waits = [limiter.wait("a") for _ in range(23)]
    assert waits[:20] == [0] * 20
    assert waits[20:] == [3, 3, 3]
    assert limiter.wait("b") == 0, "another caller"


def test_two_processes_count_together(redis: Redis) -> None:
    limiters = [RateLimiter(redis, per_minute=10) for _ in range(4)]
    with ThreadPoolExecutor(8) as pool:
        waits = list(pool.map(lambda number: limiters[number % 4].wait("a"), range(200)))
    assert waits.count(0) == 10


def test_no_limit_asks_nobody(redis: Redis) -> None:
    limiter = RateLimiter(redis, per_minute=0)
    assert limiter.wait("a") == 0
    assert redis.keys() == []


def test_of_several_requests_the_first_ones_pass_as_if_one_by_one(redis: Redis) -> None:
    limiter, alone = RateLimiter(redis, per_minute=20), RateLimiter(redis, per_minute=20)
    assert limiter.quotas({"a": 15, "b": 2}) == {"a": Quota(15, 0), "b": Quota(2, 0)}
    quotas = limiter.quotas({"a": 8, "b": 18, "c": 21, "d": 0})
    assert quotas == {"a": Quota(5, 3), "b": Quota(18, 0), "c": Quota(20, 3), "d": Quota(0, 0)}
    assert [alone.wait("e") for _ in range(21)] == [0] * 20 + [3]
    assert limiter.quotas({"a": 1, "e": 4}) == {"a": Quota(0, 3), "e": Quota(0, 3)}, "what was refused is not paid for"
    assert limiter.quotas({}) == {}


def test_time_pays_for_part_of_what_is_asked(redis: Redis) -> None:
    limiter = RateLimiter(redis, per_minute=600)
    assert limiter.quotas({"a": 600})["a"].passed == 600
    time.sleep(0.35)
    passed, wait = limiter.quotas({"a": 600})["a"]
    assert 3 <= passed <= 60
    assert wait == 1
    life = redis.pttl("limit:a")
    assert 58_000 < life <= 60_000, "a counter goes away once it is paid for"


def test_what_was_served_is_paid_for_even_beyond_the_limit(redis: Redis) -> None:
    limiter = RateLimiter(redis, per_minute=60)
    assert limiter.quotas({"a": 60})["a"].passed == 60
    assert limiter.settle({"a": 2}) == {"a": 3}, "two seconds of debt, and the next step"
    assert limiter.wait("a") == 3
    assert limiter.quotas({"a": 5})["a"].passed == 0


def test_a_tally_gives_a_seconds_worth_above_the_limit_once(redis: Redis) -> None:
    limiter = RateLimiter(redis, per_minute=1200)
    limiter.quotas({"a": 1200})
    tally, passed, began = Tally(limiter), 0, time.monotonic()

    async def run() -> int:
        passed, settled = 0, began
        while (now := time.monotonic()) < began + 5:
            passed += tally.take("a") or limiter.quotas({"a": 1})["a"].passed
            if now > settled + 0.5:
                settled = now
                await tally.settle()
        return passed

    passed = asyncio.run(run())
    seconds = time.monotonic() - began
    assert passed <= 20 * (seconds + 1) + 2


def test_nothing_is_counted_without_a_limit_or_without_redis(redis: Redis, caplog: pytest.LogCaptureFixture) -> None:
    asked = {"a": 10**6, "b": 1}
    free = {"a": Quota(10**6, 0), "b": Quota(1, 0)}
    assert RateLimiter(redis, per_minute=0).quotas(asked) == free
    with closing(open_redis(NOWHERE)) as away:
        assert RateLimiter(away, per_minute=1).quotas(asked) == free
    assert "requests are not counted" in caplog.text


def test_over_http_the_limit_is_each_keys_own(settings: Settings, admin: dict[str, str], redis: Redis) -> None:
    with serve(replace(settings, limits=LimitSettings(rate_limit=3))) as client:
        for _ in range(3):
            assert client.get("/v1/boards", headers=admin).status_code == 200
        answer = client.get("/v1/boards", headers=admin)
        problem(answer, 429, "rate-limit")
        assert int(answer.headers["retry-after"]) in TWENTY
        assert client.get("/v1/boards").status_code == 200, "counted by address"
        assert client.get("/healthz").status_code == 200
    assert len(redis.keys()) == 2


def test_pages_and_their_parts_count_for_the_address(
    settings: Settings, admin: dict[str, str], board: BoardCaller, redis: Redis
) -> None:
    part = f"/boards/{board.slug}/leaderboard"
    with serve(replace(settings, limits=LimitSettings(rate_limit=3))) as client:
        for path in ("/boards", "/v1/boards"):
            assert client.get(path).status_code == 200
        assert client.get(part, headers=admin).status_code == 200
        for path in (f"/boards/{board.slug}", part, "/docs", "/v1/boards"):
            answer = client.get(path)
            problem(answer, 429, "rate-limit")
            assert int(answer.headers["retry-after"]) in TWENTY
        told = client.get(f"/boards/{board.slug}", headers={"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"})
        assert (told.status_code, told.headers["content-type"]) == (429, "text/html; charset=utf-8")
        assert int(told.headers["retry-after"]) == 20
        assert "<h1>Too many requests</h1>" in told.text
        assert "again in 20 s." in told.text
        assert client.get("/static/orthorank.css").status_code == 200
    assert len(redis.keys()) == 1


def test_without_redis_votes_are_taken(
    settings: Settings, admin: dict[str, str], board: BoardCaller, caplog: pytest.LogCaptureFixture
) -> None:
    with serve(replace(settings, redis=RedisSettings(url=NOWHERE))) as client, caplog.at_level(logging.WARNING):
        assert Caller(client, admin)("POST", f"{board.path}/votes", ballot()).status_code == 201
        answer = client.get("/readyz")
        problem(answer, 503, "not-ready")
        assert (answer.json()["database"], answer.json()["redis"]) == ("ok", "failed")
        assert client.get("/healthz").status_code == 200
    assert "requests are not counted" in caplog.text


def test_without_the_database_the_answer_is_503(settings: Settings, admin: dict[str, str]) -> None:
    away = DatabaseSettings(url="postgresql://nobody@/none?host=/nonexistent")
    with serve(replace(settings, database=away)) as client:
        problem(client.get("/v1/boards", headers=admin), 503, "database-unavailable")
        assert client.get("/readyz").json()["database"] == "failed"


def test_a_commit_that_fails_is_no_2xx(board: BoardCaller, database: Engine) -> None:
    refuse = """
        CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'disk full'; END $$;
        CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON votes DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION fail();
    """
    with database.begin() as connection:
        connection.execute(text(refuse))
    try:
        assert board.vote().status_code == 500
    finally:
        with database.begin() as connection:
            connection.execute(text("DROP TRIGGER at_commit ON votes; DROP FUNCTION fail()"))
    assert board.votes() == []
    assert board.vote().status_code == 201


def test_lost_connections_are_replaced(board: BoardCaller, database: Engine) -> None:
    assert board.vote().status_code == 201
    with database.connect() as connection:
        connection.execute(text(OTHERS))
    assert board.vote().status_code == 201


def test_a_database_that_takes_no_writes_is_away_and_taken_up_again(
    make_migrated_database: Callable[[], str], settings: Settings
) -> None:
    """As after a change of servers, or on a full disk: connections from then are thrown away."""
    url = make_migrated_database()
    engine = open_engine(url, autocommit=True)

    def read_only(value: str) -> None:
        with engine.connect() as connection:
            connection.execute(text("SET default_transaction_read_only = off"))
            name = connection.execute(text("SELECT current_database()")).scalar_one()
            connection.execute(text(f'ALTER DATABASE "{name}" SET default_transaction_read_only = {value}'))
            connection.execute(text(OTHERS))

    with UnitOfWork(open_sessions(engine)) as work:
        secret = keys.create(work, KeyDraft(scopes=["admin"]))[1]
    with serve(replace(settings, database=DatabaseSettings(url=url), votes=VoteSettings(patience=0.5))) as client:
        call = Caller(client, {"Authorization": f"Bearer {secret}"})
        assert call("POST", "/v1/boards", {"slug": "b", "open_items": True}).status_code == 201
        for value, statuses in (("off", [201, 200]), ("on", [503, 503]), ("off", [201, 200])):
            read_only(value)
            answers = [call("POST", "/v1/boards/b/votes", ballot()), call("PATCH", "/v1/boards/b", {"title": value})]
            assert [answer.status_code for answer in answers] == statuses
    engine.dispose()
