"""Of new votes listeners hear at once, then a few times a second, and once more after the last."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from threading import Event

import pytest

from app.services.announce import Announcer

SPACING, SLACK = 0.8, 0.4
"""Seconds; on a busy machine a thread is woken late."""


class Ear:
    """Remembers when it heard of which board."""

    def __init__(self) -> None:
        self.heard: list[tuple[float, int]] = []
        self.rung = Event()

    def __call__(self, board_id: int) -> None:
        """Hear."""
        self.heard.append((time.monotonic(), board_id))
        self.rung.set()

    def moments(self, board_id: int) -> list[float]:
        """When it heard of a board."""
        return [at for at, board in self.heard if board == board_id]


@pytest.fixture
def ear() -> Ear:
    return Ear()


@pytest.fixture
def announcer(ear: Ear) -> Iterator[Announcer]:
    announcer = Announcer(ear, spacing=SPACING)
    yield announcer
    announcer.close()


def test_a_quiet_board_is_told_of_at_once(announcer: Announcer, ear: Ear) -> None:
    for _ in range(2):
        ear.rung.clear()
        began = time.monotonic()
        announcer.votes(1)
        assert ear.rung.wait(5)
        assert ear.moments(1)[-1] - began < SPACING - SLACK
        time.sleep(1.2 * SPACING)
    assert len(ear.heard) == 2


def test_a_busy_board_is_told_of_again_and_again_but_never_sooner_than_the_spacing(
    announcer: Announcer, ear: Ear
) -> None:
    began = time.monotonic()
    while time.monotonic() - began < 2.4 * SPACING:
        announcer.votes(1)
        time.sleep(0.002)
    last = time.monotonic()
    time.sleep(1.5 * SPACING)
    moments = ear.moments(1)
    gaps = [after - before for before, after in pairwise(moments)]
    assert min(gaps) > SPACING - SLACK
    assert 3 <= len(moments) <= 4
    assert moments[-1] > last, "and after the last vote"


def test_votes_right_after_a_message_are_told_of_once_and_later(announcer: Announcer, ear: Ear) -> None:
    announcer.votes(1)
    assert ear.rung.wait(5)
    for _ in range(100):
        announcer.votes(1)
    time.sleep(2.4 * SPACING)
    assert len(ear.heard) == 2


def test_boards_do_not_wait_for_each_other(announcer: Announcer, ear: Ear) -> None:
    announcer.votes(1)
    assert ear.rung.wait(5)
    announcer.votes(1)
    began = time.monotonic()
    ear.rung.clear()
    announcer.votes(2)
    assert ear.rung.wait(5)
    assert ear.heard[1][1] == 2
    assert ear.heard[1][0] - began < SPACING - SLACK


def test_what_is_still_to_be_told_is_told_at_the_end() -> None:
    ear = Ear()
    announcer = Announcer(ear, spacing=SPACING)
    announcer.votes(1)
    assert ear.rung.wait(5)
    announcer.votes(1)
    began = time.monotonic()
    announcer.close()
    assert [board for _, board in ear.heard] == [1, 1]
    assert time.monotonic() - began < SPACING - SLACK, "without the wait"


def test_a_listener_that_fails_keeps_nobody_else_from_hearing(ear: Ear, caplog: pytest.LogCaptureFixture) -> None:
    def deaf(board_id: int) -> None:
        raise ValueError(board_id)

    announcer = Announcer(deaf, ear)
    announcer.votes(1)
    announcer.votes(2)
    announcer.close()
    assert sorted(board for _, board in ear.heard) == [1, 2]
    assert "new votes of board 1 were not told" in caplog.text


def test_an_announcer_that_never_told_anything_ends() -> None:
    Announcer().close()
