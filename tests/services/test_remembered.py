"""Probabilities kept during a refit."""

from __future__ import annotations

import numpy as np

from app.services.refit.remembered import Remembered
from app.stats.types import Floats, Ints


class Counting:
    """Models that count how often they are asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, fold: int, patterns: Ints, /) -> Floats:
        self.asked += 1
        return np.full((patterns.size, 2, 2, 3), fold + 1.0) * patterns[:, None, None, None]

    def at(self, fold: int, patterns: Ints, left: Ints, right: Ints) -> Floats:
        """One pair a pattern."""
        return self(fold, patterns)[np.arange(patterns.size), left, right]


def test_the_same_question_is_answered_once_while_there_is_room() -> None:
    models = Counting()
    block = models(0, np.arange(5)).nbytes
    mu = Remembered(models, room=2 * block)
    questions = [(fold, np.arange(first, first + 5)) for fold in (0, 1) for first in (0, 5)]
    for _ in range(3):
        for fold, patterns in questions:
            np.testing.assert_array_equal(mu(fold, patterns), Counting()(fold, patterns))
    # The first two are kept, the other two asked for three times; one more was asked to learn the size.
    assert models.asked == 1 + 2 + 2 * 3
    one = np.array([1])
    np.testing.assert_array_equal(mu.at(1, np.array([3]), one, 0 * one), np.full((1, 3), 6.0))
