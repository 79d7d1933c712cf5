"""How many of the pairs drawn here have been answered by now: what their logged propensities are worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.services.refit.inputs import OPEN, Inputs, VoteTable
from app.stats.debias.response import DrawTimes, ResponseRates
from app.stats.types import Floats, Ints

SECOND = 1e6
"""In µs."""


def answered_by_now(inputs: Inputs, votes: VoteTable) -> Floats:
    """Chance that a draw such as each vote's has been answered by now.

    Now is the newest draw or answer among the inputs, so that equal inputs give equal chances.

    Parameters
    ----------
    inputs : the board's.
    votes : those of them that are asked about.

    Returns
    -------
    (m,) in (0, 1]; 1 for votes that answer no draw made here.
    """
    rate, draws = np.ones(len(votes)), _Drawn.of(inputs)
    if draws is None:
        return rate
    cell = _cells(votes.offer, votes.left, votes.right, inputs)
    at = np.minimum(np.searchsorted(draws.cell, cell), draws.cell.size - 1)
    hit = (draws.cell[at] == cell) & (draws.answered[at] < OPEN)
    rate[hit] = draws.rates(inputs)[at[hit]]
    return rate


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

    def rates(self, inputs: Inputs) -> Floats:
        """(d,) chance of an answer by now."""
        made, heard = inputs.offers.made(self.offer), self.answered < OPEN
        now = max(inputs.offers.created[inputs.offers.drawn].max(), self.answered[heard].max(initial=0))
        age = (now - made) / SECOND
        # The clock that answers are dated by may run behind that of the draws.
        waited = np.where(heard, np.maximum(self.answered - made, 0) / SECOND, np.inf)
        times = DrawTimes(self.left, self.right, age, waited)
        return ResponseRates.of(times, len(inputs.roster.names)).rate(self.left, self.right, age)


def _cells(offer: Ints, left: Ints, right: Ints, inputs: Inputs) -> Ints:
    """One number for each (offer, ordered pair)."""
    size = len(inputs.roster.names)
    return (offer * size + left) * size + right
