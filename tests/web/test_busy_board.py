"""A page of a board that changes faster than it answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Hashable
from itertools import count
from threading import Event

from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from playwright.sync_api import Page, expect

from app.web.routes import mount
from tests.api.serving import listening
from tests.web.fake_reader import FakeReader, swapped

ANSWER = 0.5
NEWS = 0.1


class SlowReader(FakeReader):
    """Takes half a second for each answer."""

    def version(self, slug: str) -> Hashable:
        time.sleep(ANSWER)
        return super().version(slug)


async def _news(opened: Event) -> AsyncIterator[str]:
    for number in count():
        opened.set()
        yield f"id: {number}\nevent: rankings\ndata: {{}}\n\n"
        await asyncio.sleep(NEWS)


def test_news_that_come_faster_than_answers_do_not_keep_the_page_old(open_page: Callable[..., Page]) -> None:
    app, reader, opened = FastAPI(docs_url=None), SlowReader(), Event()
    mount(app, reader, lambda _: 0)
    app.add_api_route("/v1/boards/{slug}/stream", lambda slug: StreamingResponse(_news(opened)))  # noqa: ARG005
    with listening(app) as port:
        page = open_page(f"http://127.0.0.1:{port}/boards/chat")
        assert opened.wait(10)
        reader.show(*swapped())
        first = page.locator("tr[data-item]").first
        expect(first).to_have_attribute("data-item", "basalt", timeout=5000)
        page.close()
