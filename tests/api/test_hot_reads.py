"""Reads in front of the application: who waits for whom, and whose key is remembered."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from starlette.types import Message, Receive, Scope, Send

from app.api.hot import LONGEST, HotReads, Memory
from app.api.kept import Kept, keep
from app.api.known import KnownKeys
from app.api.slot import slot_of
from app.api.warm import Warm
from app.cache.tally import Tally
from app.domain.keys import Caller

RANKINGS = "/v1/boards/b/rankings"
BODY_TO_COME = [(b"content-length", b"5")]
ANSWER = keep(7, public=True, tag="t", body=b"{}")


class Uncounted:
    def take(self, _: str) -> bool:
        return True


class Routes:
    """Answers after a while; `asked` counts."""

    def __init__(self, kept: Kept | None = ANSWER, seconds: float = 0.05) -> None:
        self.asked = 0
        self._kept = kept
        self._seconds = seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        await receive()
        await asyncio.sleep(self._seconds)
        slot = slot_of(scope)
        if slot is not None:
            slot.kept, slot.caller = self._kept, Caller(1, ["read"], None)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})


def remembering(routes: Routes) -> tuple[HotReads, Memory]:
    memory = Memory(Warm(), KnownKeys(), cast(Tally, Uncounted()))
    return HotReads(routes, memory), memory


async def empty() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def never(*_: Any) -> Any:
    await asyncio.Event().wait()


async def taken(_: Message) -> None:
    return


def get(
    hot: HotReads, headers: Any = (), query: bytes = b"", receive: Receive = empty, send: Send = taken
) -> Awaitable[None]:
    scope = {"type": "http", "method": "GET", "path": RANKINGS, "query_string": query, "headers": headers}
    return hot({**scope, "client": ("192.0.2.1", 1)}, receive, send)


def test_what_many_ask_for_is_made_once() -> None:
    async def run() -> int:
        routes = Routes()
        hot, _ = remembering(routes)
        await asyncio.gather(*(get(hot) for _ in range(20)))
        return routes.asked

    assert asyncio.run(run()) == 1


@pytest.mark.parametrize("headers", [BODY_TO_COME, [(b"transfer-encoding", b"chunked")]])
def test_nobody_waits_for_the_body_of_somebody_elses_request(headers: Any) -> None:
    async def run() -> None:
        hot, _ = remembering(Routes())
        slow = asyncio.ensure_future(get(hot, headers, receive=never))
        await asyncio.sleep(0)
        await asyncio.wait_for(get(hot), 0.5)
        slow.cancel()

    asyncio.run(run())


def test_nobody_waits_for_a_slow_reader() -> None:
    async def run() -> int:
        routes = Routes()
        hot, _ = remembering(routes)
        slow = asyncio.ensure_future(get(hot, send=never))
        await asyncio.sleep(0)
        await asyncio.wait_for(get(hot), 0.5)
        slow.cancel()
        return routes.asked

    assert asyncio.run(run()) == 1


def test_nobody_waits_long_for_a_request_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.api.hot.PATIENCE", 0.05)

    async def run() -> None:
        hot, _ = remembering(Routes())
        hanging = asyncio.ensure_future(get(hot, receive=never))
        await asyncio.sleep(0)
        await asyncio.wait_for(get(hot), 0.5)
        hanging.cancel()

    asyncio.run(run())


def test_who_goes_away_while_waiting_disturbs_nobody() -> None:
    async def run() -> int:
        routes = Routes(seconds=0.1)
        hot, _ = remembering(routes)
        leader, other, leaving = (asyncio.ensure_future(get(hot)) for _ in range(3))
        await asyncio.sleep(0.02)
        leaving.cancel()
        await asyncio.gather(leader, other)
        await get(hot)
        return routes.asked

    assert asyncio.run(run()) == 1


def test_answers_that_are_not_kept_are_made_side_by_side() -> None:
    async def run() -> float:
        hot, _ = remembering(Routes(kept=None))
        began = time.monotonic()
        await asyncio.gather(*(get(hot) for _ in range(40)))
        return time.monotonic() - began

    assert asyncio.run(run()) < 1.0, "one after the other they take two seconds"


def test_an_address_is_free_again_whatever_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise MemoryError

    async def run() -> None:
        routes = Routes()
        hot, _ = remembering(routes)
        with monkeypatch.context() as patched:
            patched.setattr(Warm, "put", broken)
            with pytest.raises(MemoryError):
                await get(hot)
        await asyncio.wait_for(get(hot), 0.5)
        await get(hot)
        assert routes.asked == 2

    asyncio.run(run())


def test_of_two_keys_the_first_counts() -> None:
    async def run() -> Callable[[bytes], Caller | None]:
        hot, memory = remembering(Routes())
        await get(hot, [(b"authorization", b"Bearer good"), (b"authorization", b"Bearer bad")])
        return memory.known.find

    find = asyncio.run(run())
    assert find(b"Bearer bad") is None
    assert find(b"Bearer good") is not None


def test_an_answer_at_a_long_address_is_not_kept() -> None:
    async def run() -> int:
        routes = Routes()
        hot, _ = remembering(routes)
        for query in (b"x" * (LONGEST - len(RANKINGS)), b"x" * LONGEST):
            await get(hot, query=query)
            await get(hot, query=query)
        return routes.asked

    assert asyncio.run(run()) == 1 + 2
