"""Chromium, a served site, and pages on which every message in the console is a failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest
import uvicorn
from fastapi import FastAPI, Response
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from app.web.routes import mount
from tests.web.fake_reader import FakeReader, Site

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-quic", "--disable-background-networking"]
WIDE: ViewportSize = {"width": 1280, "height": 900}


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium; a machine without it fails rather than skips."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def served() -> Iterator[Site]:
    """The pages over a fake service on a free port."""
    app, reader = FastAPI(docs_url=None), FakeReader()
    mount(app, reader, lambda _: 0)
    # Pages that are told of nothing ask.
    app.add_api_route("/v1/boards/{slug}/stream", lambda slug: Response(status_code=204))  # noqa: ARG005
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield Site(f"http://127.0.0.1:{port}", reader)
    server.should_exit = True
    thread.join()


@pytest.fixture
def site(served: Site) -> Site:
    """The served site at its start."""
    served.reader.__init__()  # type: ignore[misc]
    return served


@pytest.fixture
def complaints() -> list[str]:
    """What a test expects to find in the console: nothing, unless it takes an entry out."""
    return []


@pytest.fixture
def open_page(browser: Browser, complaints: list[str]) -> Iterator[Callable[..., Page]]:
    """Open an address in a fresh profile."""
    contexts = []

    def open_(address: str, *, viewport: ViewportSize = WIDE, **options: object) -> Page:
        context = browser.new_context(viewport=viewport, **options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(8000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert complaints == []
