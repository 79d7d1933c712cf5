"""What the outcome model is measured against: predictions that need no model of the context, made out of fold too."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import expit

from app.stats.classical import BradleyTerryFit, fit_bradley_terry
from app.stats.errors import NotConverged
from app.stats.types import Floats, Rule, Sample, Votes

SMALLEST = 1e-12
PRIOR = 0.5
"""Votes that every category is given before shares are taken, so that none is impossible."""


def log_losses(chances: Floats, votes: Votes) -> Floats:
    """(m,) -log of the chance (m, C) given to what happened, floored at 1e-12."""
    losses: Floats = -np.log(np.maximum(chances[np.arange(len(votes)), votes.outcome], SMALLEST))
    return losses


def share_chances(sample: Sample) -> Floats:
    """(m, C) the outcomes' shares in the other folds' votes, whoever was shown."""
    tables = np.stack([_shares(others) for others in _others(sample)])
    chances: Floats = tables[sample.fold[sample.votes.row]]
    return chances


def classical_chances(sample: Sample) -> Floats:
    """(m, C) of a classical Bradley-Terry model with constant rates of the other outcomes, fitted to the other folds.

    Outcomes that credit both sides alike have their overall shares. The rest is split between the outcomes in favour of
    the first and of the second item by σ(r_j - r_k), r the maximum-likelihood scores of decisive votes, and among those
    of one side by their shares. Pairs with an item whose score those votes do not determine have the overall shares.
    """
    rule, votes = decisive(sample.rule), sample.votes
    tables = np.stack([_classical(others, rule) for others in _others(sample)])
    chances: Floats = tables[sample.fold[votes.row], votes.left, votes.right]
    return chances


def decisive(rule: Rule) -> Rule | None:
    """The rule with every outcome that credits both sides alike dropped; None where none or only one side is left."""
    left, right = rule.first > rule.second, rule.second > rule.first
    if not left.any() or not right.any():
        return None
    return Rule(left.astype(np.float64), right.astype(np.float64))


def _classical(counts: Floats, rule: Rule | None) -> Floats:
    """(K, K, C) chances from counts of the same shape."""
    shares = _shares(counts)
    chances = np.broadcast_to(shares, counts.shape).copy()
    fit = None if rule is None else _fitted(counts, rule)
    if rule is None or fit is None:
        return chances
    known = np.outer(fit.ranked, fit.ranked)
    first = expit(fit.estimate.value[:, None] - fit.estimate.value)[known, None]
    decided = shares @ (rule.first + rule.second)
    side = first * rule.first / (shares @ rule.first) + (1.0 - first) * rule.second / (shares @ rule.second)
    chances[known] = np.where(rule.first + rule.second == 0, shares, decided * shares * side)
    return chances


def _fitted(counts: Floats, rule: Rule) -> BradleyTerryFit | None:
    try:
        return fit_bradley_terry(counts, rule)
    except NotConverged:
        return None


def _others(sample: Sample) -> Iterator[Floats]:
    """(K, K, C) votes of all folds but one, for each fold in turn; of all where the others have none."""
    votes, size, categories = sample.votes, sample.n_items, sample.rule.n_categories
    n_folds = int(sample.fold.max(initial=0)) + 1
    cell = ((sample.fold[votes.row] * size + votes.left) * size + votes.right) * categories + votes.outcome
    counts = np.bincount(cell, minlength=n_folds * size * size * categories).astype(np.float64)
    counts = counts.reshape(n_folds, size, size, categories)
    whole = counts.sum(axis=0)
    for own in counts:
        others = whole - own
        yield others if others.any() else whole


def _shares(counts: Floats) -> Floats:
    count = counts.sum(axis=(0, 1)) + PRIOR
    shares: Floats = count / count.sum()
    return shares
