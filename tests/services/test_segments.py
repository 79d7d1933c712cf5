"""Segments and pairs of them: names, rows, and which ones are ranked, against slow twins."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from app.services.refit import segments as module
from app.services.refit.segments import LEAST_SEGMENT, Segments, interpret, joined, rows_of
from app.services.refit.storage import Stored
from tests.stats.debias_samples import random_case

COLOURS, SHAPES, SIZES = ("red", "blue", ""), ("round, or so", "a:b", "x"), ("1", "2")


def stored(levels: dict[str, list[str]], *, n_rows: int = 900, seed: int = 0) -> Stored:
    """Rows with random votes on patterns of these levels."""
    patterns = len(next(iter(levels.values())))
    case = random_case(np.random.default_rng(seed), n_items=4, n_rows=n_rows, n_patterns=patterns, battle=True)
    return cast(Stored, SimpleNamespace(frame=SimpleNamespace(sample=case.sample), levels=levels))


def crossed(**columns: tuple[str, ...]) -> dict[str, list[str]]:
    """Every combination of levels as a pattern."""
    return {
        name: list(column) for name, column in zip(columns, zip(*product(*columns.values()), strict=True), strict=True)
    }


def slow_votes(board: Stored) -> Counter[frozenset[str]]:
    """Votes of every level and pair of levels, vote by vote."""
    sample: Any = board.frame.sample
    votes: Counter[frozenset[str]] = Counter()
    for row in sample.votes.row.tolist():
        pattern = sample.pattern[row]
        here = [f"{name}:{given[pattern]}" for name, given in board.levels.items() if given[pattern]]
        votes.update(frozenset([each]) for each in here)
        votes.update(frozenset(pair) for pair in combinations(here, 2))
    return votes


def test_a_pair_is_read_in_either_order_also_with_commas_and_colons() -> None:
    levels = {"a:1", "a:x,y", "b:2", "b:p:q", "b:2,a:1"}
    assert interpret("a:1", levels) == ("a:1",)
    assert interpret("b:p:q,a:x,y", levels) == interpret("a:x,y,b:p:q", levels) == ("a:x,y", "b:p:q")
    assert interpret("a:1,b:2", levels) == ("a:1", "b:2")
    # This one reads as a level in itself.
    assert interpret("b:2,a:1", levels) == ("b:2,a:1",)
    for unknown in ("a:3", "a:1,b:3", "a:1,a:x,y", "a:1,", "", ",", "a:1,b:2,c:3"):
        assert interpret(unknown, levels) == ()


def test_votes_and_rows_are_those_of_counting() -> None:
    board = stored(crossed(colour=COLOURS, shape=SHAPES, size=SIZES))
    found, votes = Segments(board).choose(), slow_votes(board)
    assert found.levels == {next(iter(each)): count for each, count in votes.items() if len(each) == 1}
    enough = {each for each, count in votes.items() if count >= LEAST_SEGMENT}
    assert {frozenset(interpret(name, found.levels)) for name in found.ranked} == enough
    assert found.left_out == 0
    for name in found.ranked:
        rows = rows_of(board, name)
        levels = interpret(name, found.levels)
        expected = [
            all(board.levels[at][pattern] == level for at, _, level in (each.partition(":") for each in levels))
            for pattern in board.frame.sample.pattern.tolist()
        ]
        np.testing.assert_array_equal(rows, expected)
        assert rows[board.frame.sample.votes.row].sum() == votes[frozenset(levels)]


def test_levels_come_before_pairs_and_large_ones_first() -> None:
    board = stored(crossed(colour=("red",) * 3 + ("blue",), size=SIZES))
    ranked = Segments(board).choose().ranked
    assert [name.count(":") for name in ranked] == [1, 1, 1, 1, 2, 2, 2, 2]
    votes = [rows_of(board, name)[board.frame.sample.votes.row].sum() for name in ranked]
    assert votes[:4] == sorted(votes[:4], reverse=True)
    assert votes[4:] == sorted(votes[4:], reverse=True)


def test_beyond_the_cap_segments_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    board = stored(crossed(colour=COLOURS, shape=SHAPES, size=SIZES))
    every = Segments(board).choose()
    monkeypatch.setattr(module, "MOST_SEGMENTS", 9)
    some = Segments(board).choose()
    assert some.ranked == every.ranked[:9]
    assert some.left_out == len(every.ranked) - 9


def test_a_board_with_very_many_levels_stays_within_the_cap() -> None:
    rng = np.random.default_rng(3)
    levels = {f"s{n:02}": [f"v{v}" for v in rng.integers(0, 50, 2000)] for n in range(50)}
    found = Segments(stored(levels, n_rows=40_000)).choose()
    assert len(found.ranked) == module.MOST_SEGMENTS
    assert found.left_out >= 2000
    assert all(name.count(":") == 1 for name in found.ranked)


def test_a_pair_whose_name_reads_as_something_else_is_not_ranked() -> None:
    # "a:x,b:y,b:z" would be a = "x,b:y" with b = "z", or a = "x" with b = "y,b:z".
    board = stored(crossed(a=("x", "x,b:y"), b=("z", "y,b:z")))
    found = Segments(board).choose()
    assert set(found.levels) == {"a:x", "a:x,b:y", "b:z", "b:y,b:z"}
    pairs = [name for name in found.ranked if name not in found.levels]
    assert len(pairs) == len(set(pairs)) == 3
    for name in pairs:
        assert joined(interpret(name, found.levels)) == name


def test_names_too_long_for_an_index_are_left_out() -> None:
    board = stored(crossed(a=("ä" * 500, "b"), b=("ö" * 500, "c")))
    found = Segments(board).choose()
    assert found.left_out == 1
    assert max(len(name.encode()) for name in found.ranked) <= module.LONGEST_NAME


def test_a_board_without_segments_or_rows_has_none() -> None:
    nothing = stored({"a": []}, n_rows=0)
    assert Segments(nothing).choose() == module.Choice({}, (), 0)
