"""Waits that last too long end, the others do not."""

from __future__ import annotations

import asyncio
from asyncio import Future, get_running_loop

from app.api.patience import Patience
from app.domain.errors import Unavailable
from app.services.ballot_box.casts import Fate

LATE, IN_TIME = Unavailable("late", ""), Unavailable("in-time", "")


async def waits(patience: Patience, count: int) -> list[Future[Fate]]:
    found: list[Future[Fate]] = [get_running_loop().create_future() for _ in range(count)]
    for each in found:
        patience.watch(each)
    return found


def test_a_wait_ends_when_its_time_has_come() -> None:
    asyncio.run(end_in_turn(Patience(0.4, lambda: LATE)))


async def end_in_turn(patience: Patience) -> None:
    early, answered = await waits(patience, 2)
    answered.set_result(IN_TIME)
    await asyncio.sleep(0.2)
    (late,) = await waits(patience, 1)
    assert await early is LATE
    assert not late.done()
    assert await late is LATE
    assert await answered is IN_TIME


def test_it_looks_again_after_a_quiet_time() -> None:
    asyncio.run(end_again(Patience(0.02, lambda: LATE)))


async def end_again(patience: Patience) -> None:
    for _ in range(2):
        (wait,) = await waits(patience, 1)
        assert await wait is LATE


def test_waits_of_a_loop_that_ended_keep_nobody_waiting() -> None:
    patience = Patience(0.05, lambda: LATE)

    async def leave() -> None:
        await waits(patience, 1)

    async def wait() -> None:
        (each,) = await waits(patience, 1)
        assert await each is LATE

    asyncio.run(leave())
    asyncio.run(wait())
