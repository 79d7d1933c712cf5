"""How many of the pairs drawn here have been answered by now: what their logged propensities are worth."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from app.services.refit.inputs import OPEN, Inputs, VoteTable
from app.stats.debias.response import DrawnPairs, ResponseRates
from app.stats.types import Floats, Ints

SECOND = 1e6
"""In µs."""


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
        cell = _cells(votes.offer, votes.left, votes.right, inputs)
        at = np.minimum(np.searchsorted(draws.cell, cell), draws.cell.size - 1)
        hit = (draws.cell[at] == cell) & (draws.answered[at] < OPEN)
        age = draws.age(inputs, draws.offer)
        rate[hit] = self._rates.rate(draws.left, draws.right, age)[at[hit]]
        return rate

    def without_too_young(self) -> Inputs:
        """The board without the offers made here that nobody can have answered yet, going by those that were answered.

        They would be rows that never have a label, whatever was drawn for them; with them goes a context that was never
        offered before.
        """
        inputs, draws = self.inputs, self._draws
        if draws is None:
            return inputs
        offers = inputs.offers
        age = draws.age(inputs, offers.ids)
        silent = offers.drawn & ~np.isin(offers.ids, inputs.votes.offer)
        gone = silent & self._rates.too_young(age)
        kept = np.concatenate([offers.context[~gone], inputs.votes.context])
        contexts = ~np.isin(inputs.contexts.ids, offers.context[gone]) | np.isin(inputs.contexts.ids, kept)
        return replace(inputs, offers=offers.take(~gone), contexts=inputs.contexts.take(contexts))


@dataclass(frozen=True, slots=True)
class _Drawn:
    """Drawn pairs of active items, once each however often they were leased, in the order of `cell`.

    Parameters
    ----------
    cell : (d,) see `_cells`.
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
        cells = _cells(every.offer[asked], every.left[asked], every.right[asked], inputs)
        order = np.argsort(cells, kind="stable")
        cell, first = np.unique(cells[order], return_index=True)
        if not cell.size:
            return None
        answered = np.minimum.reduceat(every.answered[asked][order], first)
        counted = np.isin(cell, _cells(votes.offer, votes.left, votes.right, inputs))
        one = asked[order[first]]
        return cls(cell, every.offer[one], every.left[one], every.right[one], np.where(counted, answered, OPEN))

    def rates(self, inputs: Inputs) -> ResponseRates:
        """Chances of an answer by now."""
        age = self.age(inputs, self.offer)
        return ResponseRates.of(DrawnPairs(self.left, self.right, age, self.answered < OPEN), len(inputs.roster.names))

    def age(self, inputs: Inputs, offers: Ints) -> Floats:
        """Seconds since offers were made, by their ids."""
        heard = self.answered[self.answered < OPEN]
        now = max(inputs.offers.created[inputs.offers.drawn].max(), heard.max(initial=0))
        age: Floats = (now - inputs.offers.made(offers)) / SECOND
        return age


def _cells(offer: Ints, left: Ints, right: Ints, inputs: Inputs) -> Ints:
    """One number for each (offer, ordered pair)."""
    size = len(inputs.roster.names)
    return (offer * size + left) * size + right
