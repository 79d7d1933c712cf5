"""Boards of the sizes that refits are measured at, as a refit reads them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from app.domain.boards import BoardConfig
from app.domain.features import Feature
from app.services.refit.inputs import OPEN, ContextTable, Inputs, OfferTable, Roster, VoteTable
from app.stats.debias.folds import mix
from app.stats.simulate import Arena
from app.stats.simulate.generator import draw_categories
from app.stats.types import Floats, Ints

SEED = 20260121


@dataclass(frozen=True)
class Size:
    """Offers with a vote each, on contexts that never repeat.

    Parameters
    ----------
    rows, items, covariates : n, K and d.
    """

    rows: int
    items: int
    covariates: int

    @property
    def config(self) -> BoardConfig:
        """Arena outcomes and one vector feature."""
        return BoardConfig(features=(Feature("x", "vector", self.covariates),))

    def inputs(self) -> Inputs:
        """Drawn alike every time: pairs and sides uniform, outcomes as on the simulated arena."""
        rng, board = np.random.default_rng(SEED), Arena(self.items, self.covariates)
        x = rng.normal(size=(self.rows, self.covariates))
        left = rng.integers(self.items, size=self.rows)
        right = (left + rng.integers(1, self.items, size=self.rows)) % self.items
        outcome = draw_categories(rng, board.probabilities_at(x, left, right))
        return Inputs(self._votes(left, right, outcome), (), _contexts(x), _no_offers(), _roster(self.items))

    def _votes(self, left: Ints, right: Ints, outcome: Ints) -> VoteTable:
        ids, nothing = np.arange(1, self.rows + 1), np.zeros(self.rows, dtype=np.int64)
        return VoteTable(
            ids=ids,
            context=ids,
            offer=nothing,
            left=left,
            right=right,
            outcome=outcome,
            voter=nothing,
            propensity=np.full(self.rows, 1 / (self.items * (self.items - 1))),
            created=ids,
            reason=nothing - 1,
        )


def _contexts(x: Floats) -> ContextTable:
    ids = np.arange(len(x) + 1)
    features = [{}, *({"x": row.tolist()} for row in x)]
    return ContextTable(ids, mix(ids).astype(np.int64), ids, ids, features)


def _no_offers() -> OfferTable:
    none = np.zeros(0, dtype=np.int64)
    return OfferTable(none, none, none, none, none > 0)


def _roster(n_items: int) -> Roster:
    ids: Ints = np.arange(n_items)
    names = tuple(f"item {number:03}" for number in ids)
    start, end = np.zeros(n_items, dtype=np.int64), np.full(n_items, OPEN)
    return Roster(
        ids, names, np.ones(n_items, dtype=np.bool_), ids, start, end, np.full(n_items, 0.5), np.zeros(n_items)
    )
