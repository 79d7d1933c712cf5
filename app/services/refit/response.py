"""How many of the pairs drawn here have been answered by now: what their logged propensities are worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from app.services.refit.inputs import OPEN, Inputs, OfferTable, VoteTable
from app.stats.debias.response import DrawnPairs, ResponseRates
from app.stats.types import Bools, Floats, Ints

SECOND = 1e6
"""In µs."""

NOBODY = np.zeros(0, dtype=np.int64)
NOTHING = DrawnPairs(NOBODY, NOBODY, np.zeros(0), np.zeros(0, dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class Answers:
    """What a refit knows of answers, for those that come later.

    Parameters
    ----------
    rates : by the positions of the items that were scored.
    now : µs, as of when ages were.
    young : number of the first offer that was too young then to be a row, `OPEN` without one.
    """

    rates: ResponseRates
    now: int
    young: int

    def age(self, created: Ints) -> Floats:
        """Seconds from a time in µs to the refit's now."""
        age: Floats = (self.now - created) / SECOND
        return age

    def too_young(self, offers: OfferTable, votes: VoteTable) -> Bools:
        """(o,) offers among those of the refit that were no rows yet, from the votes on them that it had."""
        silent = offers.drawn & ~np.isin(offers.ids, votes.offer)
        young: Bools = silent & self.rates.too_young(self.age(offers.created))
        return young


@dataclass(frozen=True)
class Responses:
    """What became of the draws of a board.

    Now is the newest draw or answer among the inputs, so that equal inputs give equal chances.

    Parameters
    ----------
    inputs : the board's.
    """

    inputs: Inputs

    @cached_property
    def _draws(self) -> _Drawn | None:
        return _Drawn.of(self.inputs)

    @cached_property
    def _rates(self) -> ResponseRates:
        assert self._draws is not None
        return self._draws.rates(self.inputs)

    def by_now(self, votes: VoteTable) -> Floats:
        """Chance that a draw such as each vote's has been answered by now.

        Parameters
        ----------
        votes : those of the inputs that are asked about.

        Returns
        -------
        (m,) in (0, 1]; 1 for votes that answer no draw made here.
        """
        inputs, rate, draws = self.inputs, np.ones(len(votes)), self._draws
        if draws is None:
            return rate
        cell = cells_of(votes.offer, votes.left, votes.right, inputs)
        at = np.minimum(np.searchsorted(draws.cell, cell), draws.cell.size - 1)
        hit = (draws.cell[at] == cell) & (draws.answered[at] < OPEN)
        age = draws.age(inputs, draws.offer)
        rate[hit] = self._rates.rate(draws.left, draws.right, age)[at[hit]]
        return rate

    def answers(self) -> Answers:
        """What later answers are read with; every draw counts as answered where nothing was drawn."""
        inputs, draws, active = self.inputs, self._draws, self.inputs.roster.active
        if draws is None:
            return Answers(ResponseRates.of(NOTHING, int(active.sum())), OPEN, OPEN)
        known = self._rates
        found = Answers(replace(known, pair=known.pair[np.ix_(active, active)]), draws.now(inputs), OPEN)
        young = inputs.offers.ids[found.too_young(inputs.offers, inputs.votes)]
        return replace(found, young=int(young.min(initial=OPEN)))

    def without_too_young(self) -> Inputs:
        """The board without the offers made here that nobody can have answered yet, going by those that were answered.

        They would be rows that never have a label, whatever was drawn for them; with them goes a context that was never
        offered before.
        """
        inputs, draws = self.inputs, self._draws
        if draws is None:
            return inputs
        offers, gone = inputs.offers, self.answers().too_young(inputs.offers, inputs.votes)
        kept = np.concatenate([offers.context[~gone], inputs.votes.context])
        contexts = ~np.isin(inputs.contexts.ids, offers.context[gone]) | np.isin(inputs.contexts.ids, kept)
        return replace(inputs, offers=offers.take(~gone), contexts=inputs.contexts.take(contexts))


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Drawn pairs of active items, once each however often they were leased, in the order of `cell`.

    Parameters
    ----------
    cell : (d,) see `cells_of`.
    offer, left, right : (d,) the draw.
    answered : (d,) µs, the first answer that is among the votes, `OPEN` without one.
    """

    cell: Ints
    offer: Ints
    left: Ints
    right: Ints
    answered: Ints

    @classmethod
    def of(cls, inputs: Inputs) -> _Drawn | None:
        """Those of a board; None without any."""
        every, votes, active = inputs.draws, inputs.votes, inputs.roster.active
        if every is None:
            return None
        # What nobody is asked about any more would look like a refusal to answer.
        asked = np.flatnonzero(active[every.left] & active[every.right])
        cells = cells_of(every.offer[asked], every.left[asked], every.right[asked], inputs)
        order = np.argsort(cells, kind="stable")
        cell, first = np.unique(cells[order], return_index=True)
        if not cell.size:
            return None
        answered = np.minimum.reduceat(every.answered[asked][order], first)
        counted = np.isin(cell, cells_of(votes.offer, votes.left, votes.right, inputs))
        one = asked[order[first]]
        return cls(cell, every.offer[one], every.left[one], every.right[one], np.where(counted, answered, OPEN))

    def rates(self, inputs: Inputs) -> ResponseRates:
        """Chances of an answer by now."""
        age = self.age(inputs, self.offer)
        return ResponseRates.of(DrawnPairs(self.left, self.right, age, self.answered < OPEN), len(inputs.roster.names))

    def age(self, inputs: Inputs, offers: Ints) -> Floats:
        """Seconds since offers were made, by their ids."""
        age: Floats = (self.now(inputs) - inputs.offers.made(offers)) / SECOND
        return age

    def now(self, inputs: Inputs) -> int:
        """µs, the newest draw or answer."""
        heard = self.answered[self.answered < OPEN]
        return int(max(inputs.offers.created[inputs.offers.drawn].max(), heard.max(initial=0)))


def cells_of(offer: Ints, left: Ints, right: Ints, inputs: Inputs) -> Ints:
    """One number for each (offer, ordered pair)."""
    size = len(inputs.roster.names)
    return (offer * size + left) * size + right
