"""Contexts that come in, and the labels that a policy takes on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np

from app.experiments.boards import Board, board, cross_fit
from app.stats.acquisition import Beliefs, Mode, Rules, draw, uniform_propensity
from app.stats.debias import Clustering, CrossFit
from app.stats.gars import Graph
from app.stats.simulate import Cyclic, Draws, Strength
from app.stats.simulate.generator import draw_categories
from app.stats.types import Covariates, Floats, Ints, Votes

UNIT = Clustering(unit="context")
SLOPES = {5: 3.0, 10: 1.5, 20: 1.5}
CURVE = 0.8


def steep(n_items: int) -> Cyclic:
    """The board of these experiments: preferences steep enough for a policy to have something to choose.

    Slopes are such that the policy from the true preferences has about .96 (Borda), .94 (Bradley-Terry) and .75 to .8
    (rank centrality) of the uniform one's variance, much as in the paper. The steeper they are, the more there is to
    gain, and the farther from that policy are those from few labels.
    """
    return Cyclic(n_items, strength=Strength(slope=SLOPES[n_items], curve=CURVE))


@dataclass(frozen=True)
class Site:
    """n contexts in the order in which they come in, and how each ordered pair would be judged on them.

    What is drawn depends on the seed and the propensities alone, so that policies meet the same luck.

    Parameters
    ----------
    generator : of the truth.
    n : contexts.
    seed : of contexts, outcomes, draws and folds.
    """

    generator: Cyclic
    n: int
    seed: int

    @cached_property
    def x(self) -> Floats:
        """(n, d)."""
        return self.generator.covariates(self._randomness(0).random((self.n, self.generator.n_covariates)))

    def label(self, start: int, propensity: Floats, mode: Mode) -> Votes:
        """Draw pairs of the contexts from `start` on by propensities (u, K (K-1)), and label them."""
        context, pair = draw(propensity, mode, self._randomness(2, start))
        left, right = np.nonzero(~np.eye(self.generator.n_items, dtype=np.bool_))
        row = start + context
        outcome = self._outcomes[row, pair]
        chance = propensity[context, pair]
        return Votes(row, left[pair], right[pair], outcome, np.ones(row.size), row, chance)

    def board(self, stages: Sequence[Votes], n_rows: int) -> Board:
        """All labels taken on the first `n_rows` contexts, of one stage after the other; it knows every context's x."""
        votes = Votes(*(np.concatenate([getattr(stage, field.name) for stage in stages]) for field in fields(Votes)))
        offered = board(self.generator, Draws(self.x[:n_rows], votes), seed=self.seed, clustering=UNIT)
        possible = ~np.eye(self.generator.n_items, dtype=np.bool_)
        return replace(offered, sample=replace(offered.sample, possible=possible), x=Covariates(self.x))

    @cached_property
    def _outcomes(self) -> Ints:
        chances = self.generator.probabilities(self.x)[:, ~np.eye(self.generator.n_items, dtype=np.bool_)]
        drawn = draw_categories(self._randomness(1), chances.reshape(-1, chances.shape[-1]))
        return drawn.reshape(chances.shape[:2])

    def _randomness(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, 29, *purpose])


@dataclass(frozen=True)
class Stage:
    """What a policy looks at before it chooses.

    Parameters
    ----------
    board : the labels so far.
    mu : fold models fitted to them.
    generator : the truth, for the oracle alone.
    contexts : (u,) rows of x about to be labelled.
    rules : budget and mode.
    """

    board: Board
    mu: CrossFit
    generator: Cyclic
    contexts: Ints
    rules: Rules

    @classmethod
    def of(cls, site: Site, board: Board, contexts: Ints, rules: Rules, *, learner: str) -> Stage:
        """Fit the fold models."""
        return cls(board, cross_fit(board, learner), site.generator, contexts, rules)

    @property
    def graph(self) -> Graph:
        return Graph.complete(self.generator.n_items)

    @cached_property
    def believed(self) -> Beliefs:
        """What the fold models say of the contexts."""
        folds = np.unique(self.board.sample.fold)
        return Beliefs.of((self.mu(int(fold), self.contexts) for fold in folds), self.generator.rule)

    @cached_property
    def true(self) -> Beliefs:
        """What is so."""
        return Beliefs.of([self.generator.probabilities(self.board.x.x[self.contexts])], self.generator.rule)


def even(n_items: int, rules: Rules, n_contexts: int) -> Floats:
    """(u, K (K-1)) of the uniform policy at the budget."""
    cost = np.ones(n_items * (n_items - 1))
    return np.full((n_contexts, cost.size), uniform_propensity(rules, cost))
