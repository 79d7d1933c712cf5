"""Segments: the levels of declared features, and pairs of levels of two of them.

A segment is written `name:level`, a pair `name:level,name:level` in either order; levels may hold commas and colons.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, islice
from typing import NamedTuple

import numpy as np

from app.services.refit.storage import Stored
from app.stats.types import Bools, Ints

LEAST_SEGMENT = 30
"""A segment with fewer votes is not ranked on its own."""
MOST_SEGMENTS = 200
"""Segments ranked at a refit: single levels before pairs, those with most votes first."""
LONGEST_NAME = 2000
"""Bytes of a name that the database's index takes; a pair with a longer one is not stored."""


def interpret(text: str, levels: Collection[str]) -> tuple[str, ...]:
    """The one or two levels that a segment's name means, sorted; none where it means nothing.

    A name that reads as a level in itself is that level, whatever commas are in it.

    Parameters
    ----------
    text : as it was asked for.
    levels : every `name:level` of the board.
    """
    if text in levels:
        return (text,)
    cuts = (at for at, mark in enumerate(text) if mark == ",")
    halves = ((text[:at], text[at + 1 :]) for at in cuts)
    found = (pair for pair in halves if pair[0] in levels and pair[1] in levels and _named(pair[0]) != _named(pair[1]))
    return tuple(sorted(next(found, ())))


def joined(levels: tuple[str, ...]) -> str:
    """The one name of a segment, whichever level was named first."""
    return ",".join(sorted(levels))


def _named(level: str) -> str:
    return level.partition(":")[0]


@dataclass(frozen=True)
class Choice:
    """The segments that a refit ranks.

    Parameters
    ----------
    levels : votes of every level, ranked or not.
    ranked : names of those to rank.
    left_out : how many more have votes enough, for want of room or of a name of their own.
    """

    levels: Mapping[str, int]
    ranked: tuple[str, ...]
    left_out: int


class _Pair(NamedTuple):
    """Two levels by number; the one with most votes sorts first."""

    minus_votes: int
    first: str
    second: str
    first_code: int
    second_code: int


class Segments:
    """The levels of a board's patterns as numbers."""

    def __init__(self, stored: Stored) -> None:
        self._sample = stored.frame.sample
        self._names: dict[str, list[str]] = {}
        self._codes: dict[str, Ints] = {}
        for name, given in stored.levels.items():
            levels, codes = np.unique(np.array(["", *given], dtype=object), return_inverse=True)
            self._names[name], self._codes[name] = [f"{name}:{level}" for level in levels], codes[1:]

    @cached_property
    def levels(self) -> dict[str, tuple[str, int]]:
        """Every level with the segment and the number that it goes by."""
        every = ((name, names) for name, names in self._names.items())
        return {level: (name, code) for name, names in every for code, level in enumerate(names) if code}

    def rows(self, segment: str) -> Bools:
        """(n,) the rows of a segment, a level or a pair of levels."""
        places = [self.levels[level] for level in interpret(segment, self.levels)]
        inside = np.ones(self._sample.pattern.max(initial=-1) + 1, dtype=np.bool_)
        for name, code in places:
            inside &= self._codes[name][: inside.size] == code
        return inside[self._sample.pattern]

    def choose(self) -> Choice:
        """Levels before pairs, those with most votes first."""
        levels = dict(self._level_votes())
        enough = sorted((-votes, name) for name, votes in levels.items() if votes >= LEAST_SEGMENT)
        pairs = sorted(self._large_pairs()) if len(self._names) > 1 else []
        names = chain((name for _, name in enough), (self._name(pair) for pair in pairs))
        ranked = tuple(islice((name for name in names if 0 < len(name.encode()) <= LONGEST_NAME), MOST_SEGMENTS))
        return Choice(levels, ranked, len(enough) + len(pairs) - len(ranked))

    @cached_property
    def _votes(self) -> Ints:
        """Votes of each pattern."""
        size = max((codes.size for codes in self._codes.values()), default=0)
        return np.bincount(self._sample.pattern[self._sample.votes.row], minlength=size)

    def _level_votes(self) -> Iterator[tuple[str, int]]:
        for name, names in self._names.items():
            votes = np.bincount(self._codes[name], weights=self._votes, minlength=len(names))
            yield from ((names[code], int(votes[code])) for code in range(1, len(names)))

    def _large_pairs(self) -> Iterator[_Pair]:
        for first, second in combinations(sorted(self._names), 2):
            width = len(self._names[second])
            key, at = np.unique(self._codes[first] * width + self._codes[second], return_inverse=True)
            votes = np.bincount(at, weights=self._votes).astype(np.int64)
            large = np.flatnonzero((votes >= LEAST_SEGMENT) & (key >= width) & (key % width > 0))
            for number, count in zip(key[large].tolist(), votes[large].tolist(), strict=True):
                yield _Pair(-count, first, second, number // width, number % width)

    def _name(self, pair: _Pair) -> str:
        """The pair's name; none where the name reads as something else."""
        levels = (self._names[pair.first][pair.first_code], self._names[pair.second][pair.second_code])
        name = joined(levels)
        return name if set(interpret(name, self.levels)) == set(levels) else ""


def rows_of(stored: Stored, segment: str) -> Bools:
    """(n,) the rows of a segment."""
    return Segments(stored).rows(segment)
