"""Propensities learned from the contexts' features, put in the place of the logged ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from app.learners.propensity import LightGBMSelection
from app.services.refit.frame import Frame
from app.stats.debias.propensity import Labels
from app.stats.debias.selection import Learned, Selection, learned_propensities
from app.stats.types import Covariates, Ints, Sample

SEED = 20260121


def with_learned(frame: Frame, covariates: Covariates) -> tuple[Frame, dict[str, Any]]:
    """Learn the propensities of a board whose kind they are.

    Parameters
    ----------
    frame : the board's rows.
    covariates : of their patterns.

    Returns
    -------
    the frame with propensities learned, as it was on other boards; and how well these tell what was shown, in JSON's
    terms.
    """
    if frame.kind != "estimated-lightgbm":
        return frame, {}
    sample, votes = frame.sample, frame.sample.votes.take(frame.event)
    learned = learned_propensities(
        Selection(
            labels=Labels(votes.row, votes.left, votes.right),
            exposure=frame.exposure,
            fold=sample.fold,
            pattern=sample.pattern,
            context=sample.context,
            x=covariates.x,
            n_folds=frame.n_folds,
            unit=frame.clustering.unit,
        ),
        LightGBMSelection(),
        seed=SEED,
    )
    pi = learned.pi[_events(sample, frame.event)]
    whole = replace(sample, votes=replace(sample.votes, propensity=pi))
    return replace(frame, sample=whole), _described(learned)


def _events(sample: Sample, event: Ints) -> Ints:
    """(m,) an event on each vote's row and ordered pair: votes on one, and offers of one row, have one propensity."""
    votes = sample.votes
    cell = (votes.row * sample.n_items + votes.left) * sample.n_items + votes.right
    order = np.argsort(cell[event], kind="stable")
    at: Ints = order[np.searchsorted(cell[event], cell, sorter=order)]
    return at


def _described(learned: Learned) -> dict[str, Any]:
    """Mean -log propensity of what was labelled, beside that of the frequencies, and how many folds found a model."""
    some = bool(learned.pi.size)
    return {
        "propensity_model": {
            "log_loss": -float(np.log(learned.pi).mean()) if some else None,
            "frequency_log_loss": -float(np.log(learned.frequency).mean()) if some else None,
            "folds_helped": int(learned.helped.sum()),
        }
    }
