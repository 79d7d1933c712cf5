"""What the outcome model is measured against: predictions that need no model of the context, made out of fold too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import expit

from app.stats.classical import BradleyTerryFit, count_cells, fit_bradley_terry
from app.stats.errors import NotConverged
from app.stats.types import Floats, Ints, Rule, Sample, Votes

SMALLEST = 1e-12
PRIOR = 0.5
"""Votes that every category is given before shares are taken, so that none is impossible."""


def log_losses(chances: Floats, votes: Votes) -> Floats:
    """(m,) -log of the chance (m, C) given to what happened, floored at 1e-12."""
    losses: Floats = -np.log(np.maximum(chances[np.arange(len(votes)), votes.outcome], SMALLEST))
    return losses


def share_chances(sample: Sample) -> Floats:
    """(m, C) the outcomes' shares in the other folds' votes, whoever was shown."""
    chances = np.empty((len(sample.votes), sample.rule.n_categories))
    for here, others in _splits(sample):
        chances[here] = _shares(others, sample.rule)
    return chances


def classical_chances(sample: Sample) -> Floats:
    """(m, C) of a classical Bradley-Terry model with constant rates of the other outcomes, fitted to the other folds.

    Outcomes that credit both sides alike have their overall shares. The rest is split between the outcomes in favour of
    the first and of the second item by σ(r_j - r_k), r the maximum-likelihood scores of decisive votes, and among those
    of one side by their shares. Pairs with an item whose score those votes do not determine have the overall shares.
    """
    chances = np.empty((len(sample.votes), sample.rule.n_categories))
    for here, others in _splits(sample):
        chances[here] = _classical(sample.votes.take(here), others, sample)
    return chances


def decisive(rule: Rule) -> Rule | None:
    """The rule with every outcome that credits both sides alike dropped; None where none or only one side is left."""
    left, right = rule.first > rule.second, rule.second > rule.first
    if not left.any() or not right.any():
        return None
    return Rule(left.astype(np.float64), right.astype(np.float64))


def _classical(votes: Votes, others: Votes, sample: Sample) -> Floats:
    shares, rule = _shares(others, sample.rule), decisive(sample.rule)
    chances = np.tile(shares, (len(votes), 1))
    fit = None if rule is None else _fitted(others, sample.n_items, rule)
    if rule is None or fit is None:
        return chances
    known = fit.ranked[votes.left] & fit.ranked[votes.right]
    score = fit.estimate.value
    first = expit(score[votes.left] - score[votes.right])[known, None]
    decided = shares @ (rule.first + rule.second)
    side = first * rule.first / (shares @ rule.first) + (1.0 - first) * rule.second / (shares @ rule.second)
    chances[known] = np.where(rule.first + rule.second == 0, shares, decided * shares * side)
    return chances


def _fitted(votes: Votes, n_items: int, rule: Rule) -> BradleyTerryFit | None:
    try:
        return fit_bradley_terry(count_cells(votes, n_items, rule.n_categories), rule)
    except NotConverged:
        return None


def _splits(sample: Sample) -> Iterator[tuple[Ints, Votes]]:
    """Of each fold, the positions of its votes and the votes of the other folds; of all where they have none."""
    fold = sample.fold[sample.votes.row]
    for number in np.unique(fold):
        own = fold == number
        yield np.flatnonzero(own), sample.votes if own.all() else sample.votes.take(~own)


def _shares(votes: Votes, rule: Rule) -> Floats:
    count = np.bincount(votes.outcome, minlength=rule.n_categories) + PRIOR
    shares: Floats = count / count.sum()
    return shares
