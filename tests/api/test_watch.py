"""The watch over boards goes on whatever fails, and what the process holds is given back whatever fails."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from app.api.hot import Memory
from app.api.known import KnownKeys
from app.api.streams import Streams
from app.api.warm import Warm
from app.api.watch import Watch
from app.cache.tally import Tally
from app.main import create_app
from app.services.ballot_box.box import BallotBox
from app.services.loaded.shelf import Shelf
from app.settings import Settings


class FailsOnce:
    """Settles at the second try."""

    def __init__(self) -> None:
        self.tries = 0
        self.settled = asyncio.Event()

    async def settle(self) -> None:
        self.tries += 1
        if self.tries == 1:
            raise ZeroDivisionError
        self.settled.set()


def test_a_part_of_the_watch_that_fails_begins_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("SETTLE", "AGAIN"):
        monkeypatch.setattr(f"app.api.watch.{name}", 0.01)
    untouched: Any = None

    async def run() -> None:
        tally = FailsOnce()
        memory = Memory(Warm(), KnownKeys(), cast(Tally, tally))
        watch = Watch("unix:///nonexistent/redis.sock", untouched, memory, Streams())
        async with watch.watching():
            await asyncio.wait_for(tally.settled.wait(), 2)

    asyncio.run(run())
    assert "a part of the watch failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_what_cannot_be_closed_keeps_nothing_else_open(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    close_box, close_shelf = BallotBox.close, Shelf.close

    def close_badly(box: BallotBox) -> None:
        close_box(box)
        raise ZeroDivisionError

    def close_and_note(shelf: Shelf) -> None:
        close_shelf(shelf)
        closed.append("shelf")

    monkeypatch.setattr(BallotBox, "close", close_badly)
    monkeypatch.setattr(Shelf, "close", close_and_note)

    async def live() -> None:
        app = create_app(settings)
        async with app.router.lifespan_context(app):
            await asyncio.sleep(0)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(live())
    assert closed == ["shelf"]
