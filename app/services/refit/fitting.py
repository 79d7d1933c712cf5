"""Fit the outcome model of each fold to the votes of the others, and what else needs no such models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.learners import learner, load_model
from app.learners.training import training_of
from app.services.refit.crew.ports import IN_TURN, Ask, Crew
from app.services.refit.modelled import contextual_model
from app.stats.contextual_bt import ContextualBT
from app.stats.debias.paired import PairedCrossFit
from app.stats.types import Covariates, Floats, Ints, OutcomeModel, Sample, Votes

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
        return _at(self.models[fold], self.covariates, patterns, left=left, right=right)

    @property
    def mu(self) -> PairedCrossFit:
        """The models as estimators ask for them."""
        return self


def _at(model: OutcomeModel, covariates: Covariates, patterns: Ints, *, left: Ints, right: Ints) -> Floats:
    """Single pairs, with judges as many at a time as have room for the margins of all pairs."""
    margins, total = covariates.margins, patterns.size
    size = max(total if margins is None else MARGINS_AT_ONCE * len(margins) // max(margins.size, 1), 1)
    parts = [
        model.probabilities_at(covariates.take(patterns[some]), left[some], right[some])
        for some in (slice(start, start + size) for start in range(0, total, size))
    ]
    return np.concatenate(parts)


class FoldFit(NamedTuple):
    """A fold's model, packed, and its outcome probabilities (v, C) of the fold's own votes, which it never saw."""

    model: bytes
    chances: Floats


@dataclass(frozen=True)
class Folds:
    """What models of folds are fitted to.

    Parameters
    ----------
    sample : the board's rows and votes.
    covariates : its distinct ones.
    """

    sample: Sample
    covariates: Covariates

    def maker(self) -> Folds:
        """See `State`."""
        return self

    def begin(self, name: str, fold: int) -> bytes:
        """The first half of a fold's fit by a learner."""
        return learner(name).begin(training_of(self.sample, self.covariates, fold), seed=SEED).to_bytes()

    def finish(self, name: str, fold: int, begun: bytes) -> FoldFit:
        """The second half."""
        training = training_of(self.sample, self.covariates, fold)
        model = learner(name).finish(training, load_model(begun), seed=SEED)
        own, pattern = self.own(fold), self.sample.pattern
        if not len(own):
            return FoldFit(model.to_bytes(), np.zeros((0, self.sample.rule.n_categories)))
        chances = _at(model, self.covariates, pattern[own.row], left=own.left, right=own.right)
        return FoldFit(model.to_bytes(), chances)

    def own(self, fold: int) -> Votes:
        """The votes of a fold."""
        votes = self.sample.votes
        return votes.take(self.sample.fold[votes.row] == fold)

    def contextual(self) -> ContextualBT | None:
        """The contextual model of the whole board."""
        return contextual_model(self.sample, self.covariates)


class Fitted(NamedTuple):
    """By learner the fold models and their probabilities (m, C) of the outcomes of votes that they never saw.

    `contextual` is the board's, see `contextual_model`.
    """

    models: dict[str, FoldModels]
    chances: dict[str, Floats]
    contextual: ContextualBT | None


def fit_folds(
    sample: Sample,
    covariates: Covariates,
    names: Sequence[str],
    *,
    folds: int,
    crew: Crew,
    told: Callable[[float], None],
) -> Fitted:
    """Fit every fold by every learner named, and the contextual model. Without a vote there is nothing to fit.

    Parameters
    ----------
    sample : the board's rows and votes.
    covariates : its distinct covariates.
    names : of the learners.
    folds : V.
    crew : who fits, where that pays.
    told : hears after each half of a fit which share of them is done.
    """
    if sample.n_items < 2 or not len(sample.votes):
        nothing = np.zeros((0, sample.rule.n_categories))
        return Fitted({name: FoldModels((), covariates) for name in names}, dict.fromkeys(names, nothing), None)
    small = len(sample.votes) * folds * sum(_COST[name] for name in names) < WORTH_A_PROCESS
    every = [(name, fold) for name in names for fold in range(folds)]
    with (IN_TURN if small else crew).at(Folds(sample, covariates)) as ask:
        finishing = _begun(ask, every, lambda done: told(done / 2))
        contextual = ask("contextual")
        found: list[FoldFit] = []
        for finish in finishing:
            found.append(finish())
            told((1.0 + len(found) / len(every)) / 2)
        by_name = {name: found[at * folds : (at + 1) * folds] for at, name in enumerate(names)}
        return Fitted(
            {
                name: FoldModels(tuple(load_model(each.model) for each in own), covariates)
                for name, own in by_name.items()
            },
            {name: _chances(sample, own) for name, own in by_name.items()},
            contextual(),
        )


def _begun(ask: Ask, every: Sequence[tuple[str, int]], told: Callable[[float], None]) -> list[Callable[[], FoldFit]]:
    """Asks for the second half of each fit as soon as its first is there: whoever is free finds something to do."""
    halves = [ask("begin", *each) for each in every]
    finishing: list[Callable[[], FoldFit]] = []
    for each, half in zip(every, halves, strict=True):
        finishing.append(ask("finish", *each, half()))
        told(len(finishing) / len(every))
    return finishing


def _chances(sample: Sample, found: Sequence[FoldFit]) -> Floats:
    """(m, C) of all votes, from those of each fold's."""
    fold = sample.fold[sample.votes.row]
    chances = np.zeros((fold.size, sample.rule.n_categories))
    for number, each in enumerate(found):
        chances[fold == number] = each.chances
    return chances
