"""Positions, ticks and numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web.axis import MARGIN, Axis, decimals, fewest_decimals, number, share

values = st.lists(st.floats(-1e4, 1e4), max_size=20)


@given(values)
def test_every_value_stands_inside_the_axis(numbers: list[float]) -> None:
    axis = Axis.over(numbers)
    assert all(MARGIN <= axis.percent(value) <= 100 - MARGIN for value in numbers)


@given(st.floats(-1e4, 1e4), st.floats(1e-3, 1e4))
def test_ticks_are_few_and_inside(low: float, width: float) -> None:
    axis = Axis(low, low + width)
    ticks = axis.ticks()
    assert len(ticks) <= 8
    assert all(low - 1e-6 <= tick <= low + width + 1e-6 for tick in ticks)


def test_ticks_are_round() -> None:
    assert Axis(-1.3, 1.4).ticks() == [-1.0, -0.5, 0.0, 0.5, 1.0]


@pytest.mark.parametrize(("spread", "expected"), [(0.11, 2), (0.0042, 4), (12.0, 0), (0.0, 2)])
def test_two_digits_of_the_error_are_shown(spread: float, expected: int) -> None:
    assert decimals(spread) == expected


@pytest.mark.parametrize(("value", "expected"), [(None, "–"), (-0.5, "−0.50"), (-0.001, "0.00"), (1234.5, "1,234.50")])
def test_numbers_have_a_minus_and_no_negative_zero(value: float | None, expected: str) -> None:
    assert number(value, 2) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(None, "–"), (0.0, "0%"), (0.001, "<1%"), (0.999, ">99%"), (1.0, "100%"), (0.814, "81%")]
)
def test_small_chances_are_not_rounded_to_none(value: float | None, expected: str) -> None:
    assert share(value) == expected


@pytest.mark.parametrize(
    ("values", "expected"), [([-0.2, 0.0, 0.2], 1), ([0.25, 0.5], 2), ([800.0, 1000.0], 0), ([], 0)]
)
def test_ticks_have_no_more_decimals_than_they_need(values: list[float], expected: int) -> None:
    assert fewest_decimals(values) == expected
