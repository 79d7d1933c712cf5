"""Draws made here, in the rows that a step touches: what their answers are worth, and how many there are.

A draw is part of its row from when it is made, and changes it again as it is answered, late or not. Leases that run out
and are given again change nothing: it is the same draw. What was answered at the refit keeps the chance that it had
there; an answer since then has that of the oldest draws of its pair: counts say how many there are, see
`app.stats.debias.live`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from app.services.live.touched import Touched
from app.services.refit.inputs import Inputs
from app.services.refit.population import Population
from app.services.refit.response import Answers, cells_of
from app.services.refit.shares import Shares
from app.stats.debias.weights import sums_by
from app.stats.types import Bools, Floats, Ints


@dataclass(frozen=True)
class Drawn:
    """The draws of some rows at one mark.

    Parameters
    ----------
    inputs, population : of these rows.
    answers : what the refit knows.
    touched : what the step reads.
    """

    inputs: Inputs
    population: Population
    answers: Answers
    touched: Touched

    def rates(self) -> Floats:
        """(m,) what the propensity of each counted vote is multiplied by; 1 for votes that answer no draw."""
        votes, rate = self.population.votes, np.ones(len(self.population.votes))
        hit = np.flatnonzero(np.isin(self._cells(votes.offer, votes.left, votes.right), self._shares.cell))
        votes = votes.take(hit)
        early = self._early(self._cells(votes.offer, votes.left, votes.right))
        age = self.answers.age(self.inputs.offers.made(votes.offer))
        left, right = self._among[votes.left], self._among[votes.right]
        rate[hit] = np.where(early, self.answers.rates.rate(left, right, age), self._oldest(votes.left, votes.right))
        return rate

    def counts(self) -> Floats:
        """(n, 4) offers since the refit, pairs drawn for them, answers to these, and late ones to draws of the refit.

        All in shares of the row, answers divided by the chances of their pairs. An excluded answer is one.
        """
        shares, votes = self._shares, self.inputs.votes
        new = ~np.isin(shares.offer, self.touched.settled)
        answered = np.isin(shares.cell, self._cells(votes.offer, votes.left, votes.right)) & ~self._early(shares.cell)
        weight = shares.share[shares.at]
        heard = np.where(answered, weight / self._oldest(shares.left, shares.right), 0.0)
        of_new, row, size = new[shares.at], shares.row[shares.at], len(self.population.rows)
        columns = [
            sums_by(shares.row, shares.share * new, size),
            *(sums_by(row, each, size) for each in (weight * of_new, heard * of_new, heard * ~of_new)),
        ]
        return np.stack(columns, axis=1)

    @cached_property
    def _shares(self) -> Shares:
        return Shares.of(self.inputs, self.population.rows.context_id, self.population.offers.row)

    @property
    def _among(self) -> Ints:
        among: Ints = np.cumsum(self.inputs.roster.active) - 1
        return among

    def _early(self, cell: Ints) -> Bools:
        """Draws that had been answered at the refit."""
        votes = self.inputs.votes
        votes = votes.take(votes.ids <= self.touched.last)
        early: Bools = np.isin(cell, self._cells(votes.offer, votes.left, votes.right))
        return early

    def _oldest(self, left: Ints, right: Ints) -> Floats:
        return self.answers.rates.oldest(self._among[left], self._among[right])

    def _cells(self, offer: Ints, left: Ints, right: Ints) -> Ints:
        return cells_of(offer, left, right, self.inputs)
