"""How few votes decide who leads: the most influential ones, dropped until the leader is no longer ahead.

A score is a mean of rows psi_i, so with d_i = psi_i,leader - psi_i,rival the rival is ahead once the d_i that remain
sum to less than zero. With outcome models and propensities held fixed, the fewest rows that do this are those with the
largest d_i. This is exact; the linear approximation of Broderick, Giordano and Meager (arXiv 2011.14999) orders rows
alike and, with d_i - mean d in place of d_i, asks for a few more. Singh et al. (arXiv 2504.20879) show how few votes
move the top of public arenas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.stats.debias.influence import Influence
from app.stats.types import Floats, Ints

# Gains that are held at once, over all rivals.
HELD = 2**21
# Rivals that are looked at together once more, with all their gains.
AGAIN = 8
# Means that differ by less are tied: nobody is ahead.
TIE = 1e-9


@dataclass(frozen=True, slots=True)
class Flip:
    """The fewest votes without which somebody else is ahead of the leader.

    Parameters
    ----------
    leader, challenger : positions among the ranked items.
    votes : how many have to be dropped.
    """

    leader: int
    challenger: int
    votes: int


@dataclass(frozen=True, slots=True)
class Parts:
    """Terms of the scores' sums.

    Parameters
    ----------
    votes : (b,) votes that go with each part when it is dropped, 0 where it cannot be.
    psi : (b, d).
    """

    votes: Ints
    psi: Floats


def votes_to_flip(
    influence: Influence, value: Floats, *, by_row: bool, votes_of_row: Ints | None = None
) -> Flip | None:
    """The fewest votes whose removal puts a rival ahead of the leader, over all rivals.

    Where a score rests on a draw of the rows alone, so does the answer: the share of their votes, of all.

    Parameters
    ----------
    influence : of the score.
    value : (d,) the scores; the first of the largest leads.
    by_row : whether a vote takes its row along, as on boards where each battle is a draw of its own; otherwise its
        correction goes and the row stays, as if nobody had answered.
    votes_of_row : (n,) votes that go with each row, where that is not one for each label in it: a ranking labels many
        pairs.

    Returns
    -------
    None with fewer than two scores, or where no number of votes changes the leader.
    """
    if value.size < 2:
        return None
    labels_of_row = np.bincount(influence.rows[influence.sample.votes.row], minlength=influence.whole)
    votes_of_row = labels_of_row if votes_of_row is None else np.where(labels_of_row > 0, votes_of_row, 0)

    def parts() -> Iterator[Parts]:
        if by_row:
            yield from (Parts(votes_of_row[each.row], each.psi) for each in influence.by_row())
        else:
            yield from (Parts((each.vote >= 0).astype(np.int64), each.psi) for each in influence.by_part())

    sample = influence.sample
    units = np.count_nonzero(votes_of_row) if by_row else len(sample.votes)
    found = fewest(parts, value, units=int(units), tie=TIE * sample.n_rows)
    if found is None or sample.n_rows == influence.whole:
        return found
    return replace(found, votes=round(found.votes * influence.whole / sample.n_rows))


def fewest(
    parts: Callable[[], Iterator[Parts]], value: Floats, *, units: int, tie: float, held: int = HELD
) -> Flip | None:
    """Search all rivals with as many gains kept as there is room for; see `votes_to_flip`.

    Of each rival the largest gains are kept. Where they do not suffice they still bound the votes that it takes, and
    only rivals who could need the fewest are looked at again, a few at a time, with all their gains.

    Parameters
    ----------
    parts : makes a pass over the terms of the sums.
    units : how many parts have votes.
    tie : sums closer to 0 than this leave the leader where it is.
    held : gains that are kept at once.
    """
    leader, order = int(np.argmax(value)), np.argsort(-value, kind="stable")
    rivals, place = order[order != leader], np.argsort(order)
    found = _pass(parts(), leader, rivals, kept=max(held // rivals.size, 1))
    best = _first(found, place, tie)
    again = sorted((each for each in found if not each.flips(tie)), key=lambda each: each.bound(tie))
    batch = max(held // max(units, 1), AGAIN)
    while again and again[0].bound(tie) < np.inf and (best is None or again[0].bound(tie) <= best.votes(tie)):
        now, again = again[:batch], again[batch:]
        looked = _pass(parts(), leader, np.array([each.rival for each in now]), kept=units)
        best = _first([*looked, *([] if best is None else [best])], place, tie)
    return None if best is None else Flip(leader, best.rival, best.votes(tie))


@dataclass(frozen=True)
class _Rival:
    """What dropping the largest gains does for one rival.

    Parameters
    ----------
    rival : who.
    left : (t,) sum of leader minus rival after 1, 2, … parts are dropped, largest first.
    dropped : (t,) votes that went with them.
    least : the smallest gain kept, 0 where all positive ones are.
    """

    rival: int
    left: Floats
    dropped: Ints
    least: float

    def flips(self, tie: float) -> bool:
        return bool((self.left < -tie).any())

    def votes(self, tie: float) -> int:
        """Votes that go until the rival is ahead."""
        return int(self.dropped[np.argmax(self.left < -tie)])

    def bound(self, tie: float) -> float:
        """Fewest votes that it could take beyond those kept; infinite where no further gain is left."""
        if self.least <= 0.0:
            return float("inf")
        return float(self.dropped[-1] + np.floor((self.left[-1] + tie) / self.least))


def _first(found: Sequence[_Rival], place: Ints, tie: float) -> _Rival | None:
    """Who needs the fewest votes; among equals the one with the higher score."""
    flipped = (each for each in found if each.flips(tie))
    return min(flipped, key=lambda each: (each.votes(tie), place[each.rival]), default=None)


def _pass(parts: Iterator[Parts], leader: int, rivals: Ints, *, kept: int) -> list[_Rival]:
    """Each rival's largest gains, in one pass."""
    largest, total = [_Largest(kept) for _ in rivals], np.zeros(rivals.size)
    for part in parts:
        gains = np.ascontiguousarray((part.psi[:, [leader]] - part.psi[:, rivals]).T)
        total += gains.sum(axis=1)
        for own, gain in zip(largest, gains, strict=True):
            own.add(gain, part.votes)
    return [own.rival(rival, sums) for own, rival, sums in zip(largest, rivals.tolist(), total.tolist(), strict=True)]


class _Largest:
    """The largest positive gains of a rival; no other can help it.

    Parameters
    ----------
    kept : how many; up to twice as many are held in between.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._floor = 0.0
        self._gains: list[Floats] = []
        self._votes: list[Ints] = []
        self._size = 0

    def add(self, gains: Floats, votes: Ints) -> None:
        """Parts (b,) with their votes (b,)."""
        chosen = np.flatnonzero((gains > self._floor) & (votes > 0))
        self._gains.append(gains[chosen])
        self._votes.append(votes[chosen])
        self._size += chosen.size
        if self._size > 2 * self._kept:
            self._shrink()

    def rival(self, rival: int, total: float) -> _Rival:
        """What they do, given the sum of all gains."""
        self._shrink()
        gains, votes = np.concatenate([np.zeros(0), *self._gains]), np.concatenate([np.zeros(0, int), *self._votes])
        order = np.argsort(-gains, kind="stable")
        return _Rival(rival, total - np.cumsum(gains[order]), np.cumsum(votes[order]), self._floor)

    def _shrink(self) -> None:
        if self._size <= self._kept:
            return
        gains, votes = np.concatenate(self._gains), np.concatenate(self._votes)
        chosen = np.argpartition(-gains, self._kept - 1)[: self._kept]
        self._gains, self._votes, self._size = [gains[chosen]], [votes[chosen]], self._kept
        self._floor = float(self._gains[0].min())
