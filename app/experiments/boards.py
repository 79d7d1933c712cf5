"""A simulated board, estimated as the service would."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from app.learners import learner
from app.learners.training import training_of
from app.stats.debias import Clustering, CrossFit, RowContent, assign_folds, mix, vote_weights
from app.stats.simulate import Draws
from app.stats.types import Bools, Covariates, Floats, Ints, Rule, Sample

FOLDS = 5


class Rated(Protocol):
    """What a board takes from its generator."""

    @property
    def n_items(self) -> int: ...

    @property
    def rule(self) -> Rule: ...


@dataclass(frozen=True)
class Board:
    """A simulated board ready for the one-step.

    Parameters
    ----------
    sample : its rows and votes, with folds.
    x : (u, d) covariates.
    clustering : what its variance is clustered by.
    """

    sample: Sample
    x: Covariates
    clustering: Clustering

    def up_to(self, n_rows: int) -> Board:
        """The board when it had its first `n_rows` rows; folds do not change as rows come in."""
        sample = self.sample
        rows = slice(n_rows)
        votes = sample.votes.take(sample.votes.row < n_rows)
        early = replace(
            sample, votes=votes, context=sample.context[rows], fold=sample.fold[rows], pattern=sample.pattern[rows]
        )
        return replace(self, sample=early)

    def with_propensities(self, used: Floats) -> Sample:
        """The sample with other propensities (m,)."""
        return replace(self.sample, votes=replace(self.sample.votes, propensity=used))

    def without(self, excluded: Bools) -> Board:
        """The board once some votes (m,) are excluded: battles go with their rows, contexts stay without the label."""
        sample, votes = self.sample, self.sample.votes.take(~excluded)
        if self.clustering.unit == "context":
            return replace(self, sample=replace(sample, votes=votes))
        kept = np.bincount(votes.row, minlength=sample.n_rows) > 0
        number = np.cumsum(kept) - 1
        left = replace(
            sample,
            votes=replace(votes, row=number[votes.row]),
            context=sample.context[kept],
            fold=sample.fold[kept],
            pattern=sample.pattern[kept],
        )
        return replace(self, sample=left)


def board(generator: Rated, draws: Draws, *, seed: int, clustering: Clustering, context: Ints | None = None) -> Board:
    """Assign folds and weights; each row is one offer.

    Parameters
    ----------
    generator : knows the items and the credits.
    draws : covariates and votes.
    seed : folds differ from seed to seed.
    clustering : of the variance; where it is by voter, so are the folds.
    context : (n,) the row of x that each offer belongs to; a row of its own where it is not given.
    """
    pattern = np.arange(len(draws.x)) if context is None else context
    n_rows = pattern.size
    name, offer = (mix(label, np.full(n_rows, seed)) for label in (pattern, np.arange(n_rows)))
    drawn = draws.votes
    labelled = np.zeros(n_rows, dtype=np.bool_)
    labelled[drawn.row] = True
    voter = None
    if clustering.unit == "battle":
        voter = offer.copy()
        voter[drawn.row] = mix(drawn.voter, np.full(len(drawn), seed))
    folds = assign_folds(RowContent(name, offer, labelled, voter), FOLDS, by=clustering.by)
    weight = vote_weights(drawn.row, drawn.left, drawn.right, offers_of_row=np.ones(len(drawn), dtype=np.int64))
    votes = replace(drawn, weight=weight)
    sample = Sample(generator.n_items, generator.rule, votes, pattern, folds.fold, pattern)
    return Board(sample, Covariates(draws.x), clustering)


def cross_fit(on: Board, learner_name: str) -> CrossFit:
    """mu(fold, patterns) of models fitted to the other folds' votes."""
    sample = on.sample
    models = {
        int(fold): learner(learner_name).fit(training_of(sample, on.x, int(fold)), seed=int(fold))
        for fold in np.unique(sample.fold)
    }

    def mu(fold: int, patterns: Ints) -> Floats:
        return models[fold].probabilities(on.x.take(patterns))

    return mu


def oracle(on: Board, probabilities: Callable[[Floats], Floats]) -> CrossFit:
    """The true mu in place of the models."""

    def mu(_fold: int, patterns: Ints) -> Floats:
        return probabilities(on.x.x[patterns])

    return mu
