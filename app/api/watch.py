"""Watches the boards that somebody reads or listens to: by the news, and by looking into the database now and then.

News makes changes show at once; looking makes them show within seconds where news was lost or Redis is away.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from app.api.hot import Memory
from app.api.streams import Streams
from app.cache.news import Bulletin, Event, News
from app.cache.subscription import Subscription
from app.db.unit_of_work import UnitOfWork
from app.db.versions import BoardVersion

log = logging.getLogger(__name__)
Seen = tuple[dict[int, BoardVersion], set[int]]

LOOK = 2.0
"""Seconds between two looks at all boards."""
SETTLE = 1.0
AGAIN = 0.5
"""Seconds until what failed is begun again."""
BEAT = 15.0
"""Seconds between two heartbeats of a stream."""


class Watch:
    """Keeps what is kept true, and tells streams.

    Parameters
    ----------
    url : of Redis.
    open_work : opens a transaction.
    """

    def __init__(self, url: str, open_work: Callable[[], UnitOfWork], memory: Memory, streams: Streams) -> None:
        self._open_work = open_work
        self._memory = memory
        self._streams = streams
        self._subscription = Subscription(url, hear=self.hear, missed=self._missed)
        self._wake = asyncio.Event()
        self._moved: set[int] = set()
        self._refits: dict[int, dict[tuple[str, str], dict[str, Any]]] = {}
        self._look_at_all = True
        self._loop: asyncio.AbstractEventLoop | None = None
        self._reading: asyncio.Task[Seen] | None = None

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Watch meanwhile; streams end with it."""
        self._loop = asyncio.get_running_loop()
        task = self._loop.create_task(self._run())
        try:
            yield
        finally:
            self._streams.close()
            task.cancel()
            await asyncio.wait([task])
            # A look that is under way holds a connection.
            if self._reading is not None:
                await asyncio.wait([self._reading])

    async def _run(self) -> None:
        async with asyncio.TaskGroup() as together:
            together.create_task(_go_on(self._subscription.run))
            together.create_task(_go_on(self._keep_looking))
            together.create_task(_go_on(partial(_every, LOOK, self.look_at_all)))
            together.create_task(_go_on(partial(_every, BEAT, self._streams.beat)))
            together.create_task(_go_on(self._keep_settling))

    def overhear(self, bulletin: Bulletin) -> None:
        """Take in a piece of news in any thread: what is kept ends at once, streams are told soon."""
        self._forget(bulletin)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.hear, bulletin)

    def hear(self, bulletin: Bulletin) -> None:
        """Take in a piece of news in the event loop."""
        self._forget(bulletin)
        if bulletin.event == "keys":
            self.look_at_all()
        elif bulletin.event != "votes":
            self.look_at(bulletin.board_id)
        if bulletin.event == "refit":
            name = str(bulletin.data.get("job")), str(bulletin.data.get("state"))
            self._refits.setdefault(bulletin.board_id, {})[name] = dict(bulletin.data)

    def _forget(self, bulletin: Bulletin) -> None:
        if bulletin.event == "keys":
            self._memory.known.forget_all()
        else:
            self._memory.warm.forget(bulletin.board_id)

    def look_at(self, board_id: int) -> None:
        """Look at a board soon."""
        self._moved.add(board_id)
        self._wake.set()

    def look_at_all(self) -> None:
        """Look soon at every board that somebody reads or listens to."""
        self._look_at_all = True
        self._wake.set()

    def _missed(self) -> None:
        self._memory.warm.forget_all()
        self._memory.known.forget_all()
        self.look_at_all()

    async def _keep_looking(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            all_, self._look_at_all = self._look_at_all, False
            moved, self._moved = self._moved, set()
            try:
                await (self.look() if all_ else self._look(moved))
            except SQLAlchemyError as error:
                # What is kept runs out by itself; the next look comes in a moment.
                log.warning("boards are not looked at: %s", error)

    async def look(self) -> None:
        """Look at every board that somebody reads or listens to."""
        read = self._memory.warm.read_lately()
        keys, streaming = self._memory.known.ids(), self._streams.keys()
        looked = time.monotonic()
        boards = {*read, *self._streams.boards()}
        if not boards and not keys:
            return
        seen, alive = await self._read(boards, {*keys, *streaming})
        self._memory.warm.confirm(boards, seen, looked)
        self._memory.known.confirm(alive, looked)
        self._streams.confirm_keys(alive, streaming)
        self._tell(boards, seen)

    async def _look(self, boards: set[int]) -> None:
        listened = boards.intersection(self._streams.boards())
        if listened:
            seen, _ = await self._read(listened, ())
            self._tell(listened, seen)
        for board_id in boards - listened:
            self._refits.pop(board_id, None)

    async def _read(self, boards: Collection[int], keys: Collection[int]) -> Seen:
        self._reading = asyncio.create_task(asyncio.to_thread(self._versions, boards, keys))
        return await asyncio.shield(self._reading)

    def _versions(self, boards: Collection[int], keys: Collection[int]) -> Seen:
        with self._open_work() as work:
            return work.versions.of(list(boards)), work.versions.alive(list(keys)) if keys else set()

    def _tell(self, boards: Collection[int], seen: dict[int, BoardVersion]) -> None:
        for board_id in boards:
            if board_id not in seen:
                self._streams.end(board_id)
                continue
            self._streams.tell(seen[board_id], list(self._refits.pop(board_id, {}).values()))

    async def settle(self) -> None:
        """Have what was answered from memory counted."""
        await self._memory.tally.settle()

    async def _keep_settling(self) -> None:
        while True:
            await asyncio.sleep(SETTLE)
            await self.settle()


async def _go_on(work: Callable[[], Awaitable[None]]) -> None:
    """Work until cancelled: what fails is told, and begun again."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("a part of the watch failed and begins again")
        await asyncio.sleep(AGAIN)


async def _every(seconds: float, action: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(seconds)
        action()


class Herald:
    """Tells all processes, and this one at once.

    Parameters
    ----------
    news : reaches the other processes.
    watch : of this process.
    """

    def __init__(self, news: News, watch: Watch) -> None:
        self._news = news
        self._watch = watch

    def publish(self, board_id: int, event: Event, **data: Any) -> None:
        """Tell what happened to the board. The caller's next read shows it."""
        self._watch.overhear(Bulletin(board_id, event, data))
        self._news.publish(board_id, event, **data)
