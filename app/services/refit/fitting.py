"""Fit the outcome model of each fold to the votes of the others, and what else needs no such models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from app.learners import learner, load_model
from app.learners.training import training_of
from app.services.refit.crew.ports import IN_TURN, Crew
from app.services.refit.modelled import contextual_model
from app.stats.contextual_bt import ContextualBT
from app.stats.debias.paired import PairedCrossFit
from app.stats.types import Covariates, Floats, Ints, OutcomeModel, Sample

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

    def fit(self, name: str, fold: int) -> bytes:
        """The model of a fold by a learner, packed."""
        return learner(name).fit(training_of(self.sample, self.covariates, fold), seed=SEED).to_bytes()

    def contextual(self) -> ContextualBT | None:
        """The contextual model of the whole board."""
        return contextual_model(self.sample, self.covariates)


class Fitted(NamedTuple):
    """Fold models by learner, and the board's contextual model; see `contextual_model`."""

    models: dict[str, FoldModels]
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
    told : hears after each fit which share of them is done.
    """
    if sample.n_items < 2 or not len(sample.votes):
        return Fitted({name: FoldModels((), covariates) for name in names}, None)
    small = len(sample.votes) * folds * sum(_COST[name] for name in names) < WORTH_A_PROCESS
    models: list[OutcomeModel] = []
    with (IN_TURN if small else crew).at(Folds(sample, covariates)) as ask:
        contextual = ask("contextual")
        for fitted in [ask("fit", name, fold) for name in names for fold in range(folds)]:
            models.append(load_model(fitted()))
            told(len(models) / (len(names) * folds))
        own = (tuple(models[start : start + folds]) for start in range(0, len(models), folds))
        by_name = {name: FoldModels(each, covariates) for name, each in zip(names, own, strict=True)}
        return Fitted(by_name, contextual())
