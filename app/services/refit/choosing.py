"""Which learner a board's outcome model comes from, and what its snapshot says of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.services.refit.crew.ports import Crew
from app.services.refit.fitting import FoldModels, fit_folds
from app.stats.contextual_bt import ContextualBT
from app.stats.diagnostics import log_losses
from app.stats.types import Covariates, Floats, Sample

AUTO = ("davidson", "lightgbm")
"""The learners that `auto` chooses from."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The models that a board is scored with.

    Parameters
    ----------
    name : of the learner asked for, perhaps `auto`.
    chosen : of the learner taken.
    models : its models.
    chances : (m, C) what they say of votes that they never saw.
    contextual : the contextual model, which needs none of them.
    log_losses : by learner fitted, the mean out-of-fold log loss; empty without votes.
    """

    name: str
    chosen: str
    models: FoldModels
    chances: Floats
    contextual: ContextualBT | None
    log_losses: Mapping[str, float]

    def described(self, sample: Sample) -> dict[str, Any]:
        """The choice in JSON's terms, beside the log loss of the outcomes' overall shares."""
        return {
            "name": self.name,
            "chosen": self.chosen,
            "log_loss": self.log_losses.get(self.chosen),
            "base_log_loss": _entropy(sample) if self.log_losses else None,
            "candidates": dict(self.log_losses),
        }


def choose(
    sample: Sample, covariates: Covariates, name: str, *, folds: int, crew: Crew, told: Callable[[float], None]
) -> Choice:
    """Fit every fold, with `auto` by each learner, and take the one of lower out-of-fold log loss for all folds.

    Parameters
    ----------
    sample : the board's rows and votes.
    covariates : its distinct covariates.
    name : of a learner, or `auto`; without a vote that is the first of its learners.
    folds : V.
    crew : who fits.
    told : hears the share of the fits that are done, in (0, 1].
    """
    names = AUTO if name == "auto" else (name,)
    models, chances, contextual = fit_folds(sample, covariates, names, folds=folds, crew=crew, told=told)
    losses = {each: float(log_losses(given, sample.votes).mean()) for each, given in chances.items() if len(given)}
    chosen = min(losses, key=losses.__getitem__, default=names[0])
    return Choice(name, chosen, models[chosen], chances[chosen], contextual, losses)


def _entropy(sample: Sample) -> float:
    count: Floats = np.bincount(sample.votes.outcome).astype(np.float64)
    share = count[count > 0] / count.sum()
    return float(-(share * np.log(share)).sum())
