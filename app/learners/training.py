"""What the model of a fold learns from."""

from __future__ import annotations

import numpy as np

from app.stats.types import Covariates, Sample, Training


def training_of(sample: Sample, covariates: Covariates, fold: int) -> Training:
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
