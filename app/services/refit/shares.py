"""Draws made here as shares of the rows that average over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.services.refit.inputs import Inputs
from app.services.refit.response import cells_of
from app.stats.debias.weights import sums_by
from app.stats.types import Floats, Ints


@dataclass(frozen=True, slots=True)
class Shares:
    """Offers that pairs were drawn for (o of them), and these pairs (d), once each however often they were leased.

    Parameters
    ----------
    offer, row : (o,) number of the offer, ascending, and its row.
    share : (o,) of the offer in its row.
    at : (d,) place of the pair's offer.
    left, right : (d,) by their positions in the roster; both items active.
    cell : (d,) see `cells_of`.
    """

    offer: Ints
    row: Ints
    share: Floats
    at: Ints
    left: Ints
    right: Ints
    cell: Ints

    @classmethod
    def of(cls, inputs: Inputs, context_id: Ints, row: Ints) -> Shares:
        """Of the draws of some inputs.

        Parameters
        ----------
        context_id : (n,) of the rows, each a context's.
        row : (e,) the row of every offer, draws or not.
        """
        offers = inputs.offers.take(inputs.offers.drawn)
        order = np.argsort(context_id, kind="stable")
        place = order[np.searchsorted(context_id, offers.context, sorter=order)]
        share = 1.0 / sums_by(row, np.ones(row.size), context_id.size)[place]
        every, active = inputs.draws, inputs.roster.active
        if every is None or not offers.ids.size:
            nothing = np.zeros(0, dtype=np.int64)
            return cls(offers.ids, place, share, nothing, nothing, nothing, nothing)
        asked = active[every.left] & active[every.right] & np.isin(every.offer, offers.ids)
        cells = cells_of(every.offer[asked], every.left[asked], every.right[asked], inputs)
        cell, first = np.unique(cells, return_index=True)
        drawn = np.flatnonzero(asked)[first]
        at = np.searchsorted(offers.ids, every.offer[drawn])
        return cls(offers.ids, place, share, at, every.left[drawn], every.right[drawn], cell)

    def per_pair(self) -> float:
        """Offers for each drawn pair, in shares of rows; 1 where no pair was drawn."""
        pairs = float(self.share[self.at].sum())
        return float(self.share.sum()) / pairs if pairs else 1.0
