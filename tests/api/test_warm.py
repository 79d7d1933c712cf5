"""Answers in memory: how long they hold, and how much is held."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from app.api.kept import keep
from app.api.warm import IDLE, LEASE, Warm
from app.db.versions import BoardVersion

RANKINGS = "/v1/boards/b/rankings"
ANSWER = keep(7, public=True, tag="t", body=b"{}")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def version(board_id: int) -> BoardVersion:
    return BoardVersion(board_id, "b", True, datetime(2020, 1, 1, tzinfo=UTC), None, 0, None, None)


def test_the_bound_counts_addresses() -> None:
    warm = Warm(most=1 << 20)
    addresses = [(RANKINGS, b"%d" % number + b"0" * 100_000) for number in range(30)]
    for address in addresses:
        warm.put(address, ANSWER, 0)
    assert 8 <= sum(warm.find(address) is not None for address in addresses) <= 10


def test_an_answer_holds_for_its_own_lease_unless_somebody_looks() -> None:
    warm = Warm(clock=(clock := Clock()))
    warm.put((RANKINGS, b""), ANSWER, 0)
    for other in range(3):
        clock.now += LEASE * 0.4
        warm.put((RANKINGS, b"%d" % other), ANSWER, warm.tick)
    assert warm.find((RANKINGS, b"")) is None, "answers to other questions do not prolong it"
    warm.confirm([7], {7: version(7)}, clock.now)
    warm.put((RANKINGS, b""), ANSWER, warm.tick)
    clock.now += LEASE * 0.9
    warm.confirm([7], {7: version(7)}, clock.now)
    clock.now += LEASE * 0.9
    assert warm.find((RANKINGS, b"")) is not None, "a look does"


def test_boards_that_nobody_reads_are_let_go() -> None:
    warm = Warm(clock=(clock := Clock()))
    warm.put((RANKINGS, b""), ANSWER, 0)
    warm.put(("/v1/boards/c/rankings", b""), keep(8, public=True, tag="t", body=b"{}"), 0)
    asked: list[int] = []
    for look in range(int(2 * IDLE)):
        clock.now += 2
        warm.put((RANKINGS, b""), ANSWER, warm.tick)
        if look == IDLE // 2 - 5:
            warm.forget(8)
        asked = warm.read_lately()
        warm.confirm(asked, {board: version(board) for board in asked}, clock.now)
    assert asked == [7]
    assert list(warm._boards) == [7]


def test_a_look_says_nothing_of_boards_that_it_did_not_ask_for() -> None:
    warm = Warm()
    warm.put((RANKINGS, b""), ANSWER, 0)
    warm.confirm([8], {8: version(8)}, time.monotonic())
    assert warm.find((RANKINGS, b"")) is ANSWER
