"""Changes between two estimates that share rows."""

from __future__ import annotations

import numpy as np
import pytest

from app.stats.errors import InvalidInput
from app.stats.inference import change
from app.stats.types import Estimate, Floats


def mean(rows: Floats) -> Estimate:
    """The mean of (n, d) rows."""
    return Estimate(rows.mean(axis=0), np.cov(rows.T) / rows.shape[0], rows.shape[0])


@pytest.mark.parametrize(("first", "last"), [(400, 440), (400, 600), (400, 1600)])
def test_a_growing_board_that_does_not_change_is_seldom_said_to_change(first: int, last: int) -> None:
    rng = np.random.default_rng(first + last)
    runs, size, alarms, errors = 1500, 4, 0, []
    for _ in range(runs):
        rows = rng.normal(size=(last, size)) @ np.diag([1.0, 2.0, 0.5, 1.0])
        found = change(mean(rows[:first]), mean(rows), nested=True)
        alarms += found.beyond_noise(level=0.95, comparisons=size).any()
        errors.append(found.value / found.error)
    # By Bonferroni at most 5%; what is granted to refits makes it less.
    assert alarms / runs <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)
    # And the errors are no larger than that grant explains: the standardised change has about unit spread.
    share = (1 / first - 1 / last) / ((1 / first - 1 / last) + 0.05 / first)
    assert np.std(errors) == pytest.approx(np.sqrt(share), rel=0.06)


def test_a_change_is_seen() -> None:
    rng = np.random.default_rng(3)
    seen = 0
    for _ in range(200):
        rows = rng.normal(size=(1000, 3))
        rows[500:, 0] += 0.6
        found = change(mean(rows[:500]), mean(rows), nested=True).beyond_noise(level=0.95, comparisons=3)
        seen += found[0]
        assert found[1:].sum() <= 2
    assert seen >= 190


def test_without_nesting_the_noise_of_both_counts() -> None:
    before = Estimate(np.array([0.0, 1.0]), np.diag([0.04, 0.01]), 100)
    after = Estimate(np.array([0.3, 1.0]), np.diag([0.05, 0.01]), 100)
    assert np.allclose(change(before, after, nested=False).error ** 2, [0.09, 0.02])
    with pytest.raises(InvalidInput):
        change(before, after, nested=False).beyond_noise(level=1.0, comparisons=2)
