"""Cells of the heat map."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.web.heatmap import heat_map, shade

TITLES = {"a": "Ada", "b": "Bell"}


def pair(score: float | None, interval: list[float] | None = None) -> dict[str, Any]:
    counts = {"first_left": {"left": 3, "both_bad": 1}, "second_left": {"left": 0}}
    return {"first": "a", "second": "b", "score": score, "interval": interval, "counts": counts}


def test_the_other_half_is_turned_round() -> None:
    first, second = heat_map([pair(0.8, [0.7, 0.95])], TITLES, most=5).lines
    assert (first.cells[1].text, second.cells[0].text) == ("80", "20")
    assert "20% (5% to 30%)" in second.cells[0].says
    assert first.cells[1].counts == "Ada on the left: 3 left, 1 both bad. Bell on the left: no votes."


def test_a_share_beyond_its_range_is_drawn_at_the_end_and_said() -> None:
    cell = heat_map([pair(1.55)], TITLES, most=5).lines[0].cells[1]
    assert (cell.text, cell.shade) == ("100", "h5")
    assert "155%; an estimate beyond what a share can be" in cell.says


def test_items_beyond_the_number_asked_for_are_counted() -> None:
    assert heat_map([], TITLES, most=1).hidden == 1


@pytest.mark.parametrize(("score", "expected"), [(None, "none"), (0.5, ""), (0.52, "h1"), (0.05, "l5"), (0.71, "h3")])
def test_shades(score: float | None, expected: str) -> None:
    assert shade(score) == expected


@given(st.floats(-3, 3))
def test_every_shade_is_in_the_style_sheet(score: float) -> None:
    assert shade(score) in {"", *(f"{side}{n}" for side in "lh" for n in range(1, 6))}
