"""Fit the outcome model of each fold to the votes of the others: here, or in processes where that pays."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
from threadpoolctl import threadpool_limits

from app.embedded.processes import end_with
from app.learners import learner, load_model
from app.stats.debias.paired import PairedCrossFit
from app.stats.types import Covariates, Floats, Ints, OutcomeModel, Sample, Training

SEED = 20260121
WORTH_A_PROCESS = 40_000
"""Votes × folds from which starting processes, a second or two, costs less than fitting davidson in turn."""
_COST = {"davidson": 1, "lightgbm": 4}
"""Time of a fit, in davidson's."""
MARGINS_AT_ONCE = 1 << 22
"""Judges' margins copied together where losses are computed."""


@dataclass(frozen=True, slots=True)
class FoldModels:
    """One outcome model per fold, fitted without the fold's rows.

    Parameters
    ----------
    models : by fold.
    covariates : the board's distinct ones.
    """

    models: tuple[OutcomeModel, ...]
    covariates: Covariates

    def __call__(self, fold: int, patterns: Ints, /) -> Floats:
        """(u, K, K, C) probabilities; see `CrossFit`."""
        return self.models[fold].probabilities(self.covariates.take(patterns))

    def at(self, fold: int, patterns: Ints, left: Ints, right: Ints) -> Floats:
        """(m, C) of one ordered pair a pattern; see `PairedCrossFit`."""
        parts = [
            self.models[fold].probabilities_at(self.covariates.take(patterns[at]), left[at], right[at])
            for at in self._portions(np.arange(patterns.size))
        ]
        return np.concatenate(parts)

    @property
    def mu(self) -> PairedCrossFit:
        """The models as estimators ask for them."""
        return self

    def losses(self, sample: Sample) -> Floats:
        """(m,) out-of-fold -log mu of each vote's outcome."""
        given = self.chances(sample)[np.arange(len(sample.votes)), sample.votes.outcome]
        losses: Floats = -np.log(np.maximum(given, 1e-12))
        return losses

    def chances(self, sample: Sample) -> Floats:
        """(m, C) out-of-fold probabilities of each vote's outcomes."""
        votes = sample.votes
        fold, pattern = sample.fold[votes.row], sample.pattern[votes.row]
        chances = np.zeros((len(votes), sample.rule.n_categories))
        for number in range(len(self.models)):
            at = np.flatnonzero(fold == number)
            if at.size:
                chances[at] = self.at(number, pattern[at], votes.left[at], votes.right[at])
        return chances

    def _portions(self, votes: Ints) -> Iterator[Ints]:
        """The votes, with judges as many at a time as have room for the margins of all pairs."""
        margins = self.covariates.margins
        size = votes.size if margins is None else MARGINS_AT_ONCE * len(margins) // max(margins.size, 1)
        return (votes[start : start + max(size, 1)] for start in range(0, votes.size, max(size, 1)))


def fit_folds(
    sample: Sample,
    covariates: Covariates,
    names: Sequence[str],
    *,
    folds: int,
    processes: int,
    told: Callable[[float], None],
) -> dict[str, FoldModels]:
    """Fit every fold by every learner named. Without a vote there is nothing to fit.

    Parameters
    ----------
    sample : the board's rows and votes.
    covariates : its distinct covariates.
    names : of the learners.
    folds : V.
    processes : how many may fit side by side.
    told : hears after each fit which share of them is done.
    """
    if sample.n_items < 2 or not len(sample.votes):
        return {name: FoldModels((), covariates) for name in names}
    tasks = ((name, _training(sample, covariates, fold)) for name in names for fold in range(folds))
    small = len(sample.votes) * folds * sum(_COST[name] for name in names) < WORTH_A_PROCESS or processes == 1
    models: list[OutcomeModel] = []
    for model in _in_turn(tasks) if small else _side_by_side(tasks, processes):
        models.append(model)
        told(len(models) / (len(names) * folds))
    own = (tuple(models[start : start + folds]) for start in range(0, len(models), folds))
    return {name: FoldModels(each, covariates) for name, each in zip(names, own, strict=True)}


def _training(sample: Sample, covariates: Covariates, fold: int) -> Training:
    """The votes of the other folds; of all where they have none."""
    own = sample.fold[sample.votes.row] == fold
    votes = sample.votes if own.all() else sample.votes.take(~own)
    return Training(
        x=covariates,
        pattern=sample.pattern[votes.row],
        left=votes.left,
        right=votes.right,
        outcome=votes.outcome,
        weight=np.ones(len(votes)),
        group=sample.context[votes.row],
        n_items=sample.n_items,
        rule=sample.rule,
    )


def _in_turn(tasks: Iterator[tuple[str, Training]]) -> Iterator[OutcomeModel]:
    return (learner(name).fit(training, seed=SEED) for name, training in tasks)


def _side_by_side(tasks: Iterator[tuple[str, Training]], processes: int) -> Iterator[OutcomeModel]:
    # A worker that is killed must not leave its fits behind.
    context, parent = get_context("spawn"), os.getpid()
    with ProcessPoolExecutor(processes, context, initializer=end_with, initargs=(parent,)) as pool:
        waiting = [pool.submit(_fit, name, training) for name, training in tasks]
        for future in waiting:
            yield load_model(future.result())


def _fit(name: str, training: Training) -> bytes:
    with threadpool_limits(1):
        return learner(name).fit(training, seed=SEED).to_bytes()
