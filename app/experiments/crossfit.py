"""A simulated board, estimated as the service would."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from app.learners import learner
from app.stats.debias import CrossFit, RowContent, assign_folds, mix, vote_weights
from app.stats.simulate import Draws, Generator
from app.stats.types import Covariates, Floats, Ints, Sample, Training

FOLDS = 5


@dataclass(frozen=True)
class Board:
    """A simulated board ready for the one-step.

    Parameters
    ----------
    sample : its rows and votes, with folds.
    x : (n, d) covariates, one pattern a row.
    """

    sample: Sample
    x: Covariates


def board(generator: Generator, draws: Draws, *, seed: int) -> Board:
    """Assign folds and weights: each row of the draws is a context with one offer."""
    n_rows = len(draws.x)
    row = np.arange(n_rows)
    name = mix(row, np.full(n_rows, seed))
    labelled = np.zeros(n_rows, dtype=np.bool_)
    labelled[draws.votes.row] = True
    folds = assign_folds(RowContent(name, name, labelled), FOLDS, by="context")
    drawn = draws.votes
    weight = vote_weights(drawn.row, drawn.left, drawn.right, offers_of_row=np.ones(len(drawn), dtype=np.int64))
    votes = replace(drawn, weight=weight)
    return Board(Sample(generator.n_items, generator.rule, votes, row, folds.fold, row), Covariates(draws.x))


def cross_fit(on: Board, learner_name: str) -> CrossFit:
    """mu(fold, patterns) of models fitted to the other folds' votes."""
    sample = on.sample
    models = {}
    for fold in np.unique(sample.fold):
        votes = sample.votes.take(sample.fold[sample.votes.row] != fold)
        pattern = sample.pattern[votes.row]
        training = Training(
            on.x,
            pattern,
            votes.left,
            votes.right,
            votes.outcome,
            np.ones(len(votes)),
            votes.row,
            sample.n_items,
            sample.rule,
        )
        models[int(fold)] = learner(learner_name).fit(training, seed=int(fold))

    def mu(fold: int, patterns: Ints) -> Floats:
        return models[fold].probabilities(on.x.take(patterns))

    return mu


def oracle(on: Board, generator: Generator) -> CrossFit:
    """The true mu in place of the models."""

    def mu(_fold: int, patterns: Ints) -> Floats:
        return generator.probabilities(on.x.x[patterns])

    return mu
