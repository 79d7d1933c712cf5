"""The page of a board of the real service in a real browser: it changes as votes are counted, by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial

import pytest
from fastapi import FastAPI
from playwright.sync_api import Page, expect
from redis import Redis
from sqlalchemy import Engine

from app.cache.connection import open_redis
from app.cache.news import RedisNews
from app.domain.boards import BoardConfig
from app.main import create_app
from app.services import votes
from app.settings import Settings
from tests.api.serving import listening
from tests.refitting import Bench, ballots

ITEMS = ("ada", "bell", "curie")


@pytest.fixture
def bench(database: Engine) -> Bench:
    return Bench(database)


@pytest.fixture
def app(settings: Settings) -> FastAPI:
    return create_app(settings)


@pytest.fixture
def site(app: FastAPI) -> Iterator[str]:
    with listening(app) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    with open_redis(redis_url) as redis:
        yield redis


def vote(bench: Bench, slug: str, *items: str, size: int, seed: int) -> None:
    """Votes by which earlier items are better."""
    with bench.work() as work:
        board = work.boards.find(slug)
        if board is None:
            board = work.boards.add(slug, "Board", True, BoardConfig(open_items=True))
            assert board is not None
        votes.record(work, board, votes.read_ballots(ballots(items, size, seed=seed)), now=datetime.now(UTC))


def falls_silent(page: Page) -> bool:
    """Whether nothing is asked for longer than pages that poll wait; a slow server opens the stream a little later."""
    asked = partial(page.evaluate, "performance.getEntriesByName(location.href + '/leaderboard').length")
    before = asked()
    page.wait_for_timeout(3000)
    return bool(asked() == before)


def test_votes_change_the_page_without_a_reload(
    site: str, bench: Bench, redis: Redis, open_page: Callable[..., Page]
) -> None:
    vote(bench, "streamed", *ITEMS, size=200, seed=1)
    bench.refit("streamed")
    page = open_page(f"{site}/boards/streamed")
    expect(page.locator("tr[data-item]").first).to_have_attribute("data-item", "ada")
    page.evaluate("window.same = true")
    assert any(falls_silent(page) for _ in range(4)), "while a stream is open nobody polls every two seconds"
    vote(bench, "streamed", *ITEMS[::-1], size=900, seed=2)
    bench.refit("streamed", news=RedisNews(redis))
    expect(page.locator("tr[data-item]").first).to_have_attribute("data-item", "curie")
    assert page.evaluate("window.same") is True
    assert "curie moved" in (page.locator("#announce").text_content() or "")


def test_without_a_stream_the_page_polls(
    app: FastAPI, site: str, bench: Bench, open_page: Callable[..., Page], complaints: list[str]
) -> None:
    app.state.ports.streams.close()
    vote(bench, "polled", *ITEMS, size=200, seed=1)
    bench.refit("polled")
    page = open_page(f"{site}/boards/polled")
    expect(page.locator("tr[data-item]").first).to_have_attribute("data-item", "ada")
    vote(bench, "polled", *ITEMS[::-1], size=900, seed=2)
    bench.refit("polled")
    expect(page.locator("tr[data-item]").first).to_have_attribute("data-item", "curie", timeout=10_000)
    assert complaints, "the browser says that the stream was refused"
    assert all("503" in complaint for complaint in complaints)
    complaints.clear()
