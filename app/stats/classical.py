"""Classical Bradley-Terry: maximum likelihood on pooled counts, with sandwich errors.

The likelihood has a maximum exactly when every item can be reached from every other along "has won against" (the win
graph is strongly connected; Ford 1957). Where it is not, comparisons between two strong components all go one way:
they push the components infinitely far apart and say nothing about differences within them. So one strong component
is fitted on its own comparisons, the one with most votes among those of two items or more; these scores are the
finite differences that the whole likelihood implies. Items tied to it by votes, yet outside, are separated; the rest
are disconnected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import coo_array
from scipy.special import expit

from app.stats.errors import InvalidInput, NotConverged
from app.stats.gars.graph import components
from app.stats.types import Bools, Estimate, Floats, Ints, Rule, Votes

TOLERANCE = 1e-10
MOST_STEPS = 200


@dataclass(frozen=True, slots=True)
class BradleyTerryFit:
    """Maximum-likelihood scores and what the solver can vouch for.

    Parameters
    ----------
    estimate : log-odds (K,) that sum to 0 over the ranked items, 0 without error elsewhere; covariance by cells
        (every vote on its own).
    ranked : (K,) items with a finite score; none when no two items have both won and lost against each other.
    separated : (K,) items that votes tie to the ranked ones, but only in one direction.
    information : (K, K) pseudo-inverse of the information matrix.
    gap : largest |derivative of the log likelihood| by a score, per vote of the item.
    steps : Newton steps taken.
    """

    estimate: Estimate
    ranked: Bools
    separated: Bools
    information: Floats
    gap: float
    steps: int


def count_cells(votes: Votes, n_items: int, n_categories: int) -> Floats:
    """(K, K, C) votes of each ordered pair and category, each vote counted once whatever its weight."""
    cell = (votes.left * n_items + votes.right) * n_categories + votes.outcome
    counts = np.bincount(cell, minlength=n_items * n_items * n_categories)
    return counts.reshape(n_items, n_items, n_categories).astype(np.float64)


def fit_bradley_terry(counts: Floats, rule: Rule) -> BradleyTerryFit:
    """Maximise Σ_jk w_jk log σ(r_j - r_k), w_jk what j was credited with against k in either order.

    A category credits its first weight to the left item and its second to the right one, so that a tie of weights
    ½, ½ is half a win for each (as public arenas count it).

    Parameters
    ----------
    counts : (K, K, C) votes of each ordered pair and category.
    rule : the credits.

    Raises
    ------
    NotConverged
        When Newton's method stops with a gap above 1e-10.
    """
    if counts.ndim != 3 or counts.shape[0] != counts.shape[1] or counts.shape[2] != rule.n_categories:
        raise InvalidInput(f"counts of shape {counts.shape} for {rule.n_categories} categories")
    wins = counts @ rule.first + (counts @ rule.second).T
    np.fill_diagonal(wins, 0.0)
    ranked, separated = _identified(wins)
    block = np.ix_(ranked, ranked)
    scores, gap, steps = _maximise(wins[block])
    if gap > TOLERANCE:
        raise NotConverged(gap, TOLERANCE)
    value, information = np.zeros(ranked.size), np.zeros(wins.shape)
    value[ranked] = scores
    if ranked.any():
        information[block] = _inverse(_information(scores, wins[block]))
    between = np.outer(ranked, ranked) & ~np.eye(ranked.size, dtype=np.bool_)
    used = counts * between[:, :, None] * (rule.first + rule.second > 0)
    covariance = information @ _cell_scores(used, value, rule) @ information
    estimate = Estimate(value, covariance, round(float(used.sum())))
    return BradleyTerryFit(estimate, ranked, separated, information, gap, steps)


def clustered(fit: BradleyTerryFit, votes: Votes, rule: Rule, *labels: Ints) -> Estimate:
    """The fit with a covariance that sums score contributions within clusters.

    Parameters
    ----------
    fit : the scores.
    votes : the votes behind it, each counted once.
    rule : the credits.
    labels : one or two (m,) cluster labels; with two, the variances by either add and that by their intersection is
        taken off (Cameron, Gelbach and Miller 2011), negative directions set to 0.
    """
    inside = fit.ranked[votes.left] & fit.ranked[votes.right]
    kept = votes.take(inside)
    codes = [np.unique(label[inside], return_inverse=True)[1] for label in labels]
    score = _vote_scores(fit, kept, rule)
    meat = sum((_cluster_meat(score, kept, code, fit) for code in codes), np.zeros(fit.information.shape))
    if len(codes) > 1:
        both = np.unique(codes[0] * (codes[1].max(initial=0) + 1) + codes[1], return_inverse=True)[1]
        meat -= _cluster_meat(score, kept, both, fit)
        values, vectors = np.linalg.eigh(meat)
        meat = (vectors * np.maximum(values, 0.0)) @ vectors.T
    covariance = fit.information @ meat @ fit.information
    return Estimate(fit.estimate.value, covariance, fit.estimate.n_rows)


def _identified(wins: Floats) -> tuple[Bools, Bools]:
    """Ranked items, and those that votes tie to them in one direction only."""
    strong = components(wins > 0, strong=True)
    votes = wins + wins.T
    inside = np.bincount(strong, weights=(votes * (strong[:, None] == strong)).sum(axis=1))
    size = np.bincount(strong)
    if size.max(initial=0) < 2:
        return np.zeros(strong.size, dtype=np.bool_), votes.sum(axis=1) > 0
    best = np.lexsort((np.arange(size.size), -size, -inside))[0]
    ranked: Bools = strong == best
    weak = components(votes > 0)
    tied: Bools = np.isin(weak, weak[ranked]) & ~ranked
    return ranked, tied


def _maximise(wins: Floats) -> tuple[Floats, float, int]:
    """Damped Newton from equal scores: scores that sum to 0, gap, steps.

    Along a direction whose largest difference is β the curvature changes by at most a factor e^β per unit length, so a
    step of log(1 + β)/β raises the likelihood from anywhere (Sun and Tran-Dinh 2019, generalised self-concordance) and
    turns into a full Newton step near the maximum.
    """
    scores = np.zeros(wins.shape[0])
    total = wins.sum(axis=1) + wins.sum(axis=0)
    gap = np.inf
    for step in range(MOST_STEPS):
        gradient = _gradient(scores, wins)
        gap, before = float(np.max(np.abs(gradient) / total, initial=0.0)), gap
        # Past the tolerance, go on while steps still help: the last ones are quadratic and nearly free.
        if gap <= TOLERANCE and (gap == 0.0 or gap >= before / 4):
            return scores, gap, step
        move = _inverse(_information(scores, wins)) @ gradient
        reach = float(np.ptp(move))
        scores = scores + move * (np.log1p(reach) / reach if reach > 0.0 else 1.0)
        scores -= scores.mean()
    return scores, gap, MOST_STEPS


def _gradient(scores: Floats, wins: Floats) -> Floats:
    surprise = wins * expit(scores - scores[:, None])
    gradient: Floats = surprise.sum(axis=1) - surprise.sum(axis=0)
    return gradient


def _information(scores: Floats, wins: Floats) -> Floats:
    chance = expit(scores[:, None] - scores)
    return _laplacian((wins + wins.T) * chance * chance.T)


def _laplacian(weights: Floats) -> Floats:
    laplacian: Floats = np.diag(weights.sum(axis=1)) - weights
    return laplacian


def _inverse(laplacian: Floats) -> Floats:
    """Pseudo-inverse of a connected Laplacian, scaled to a unit diagonal first: its entries may span many orders."""
    root = np.sqrt(laplacian.diagonal())
    null = root / np.linalg.norm(root)
    scaled = laplacian / np.outer(root, root) + np.outer(null, null)
    inverse = np.linalg.inv(scaled) / np.outer(root, root)
    # Any generalised inverse becomes the pseudo-inverse once rows and columns are centred.
    inverse = inverse - inverse.mean(axis=0)
    pseudo: Floats = inverse - inverse.mean(axis=1, keepdims=True)
    return pseudo


def _cell_scores(counts: Floats, value: Floats, rule: Rule) -> Floats:
    """Σ over votes of the outer product of a vote's score contribution, from the counts."""
    chance = expit(value[:, None] - value)[:, :, None]
    squares = (counts * (rule.first - (rule.first + rule.second) * chance) ** 2).sum(axis=2)
    return _laplacian(squares + squares.T)


def _vote_scores(fit: BradleyTerryFit, votes: Votes, rule: Rule) -> Floats:
    """(m,) derivative of each vote's log likelihood by r_left, minus that by r_right's."""
    chance = expit(fit.estimate.value[votes.left] - fit.estimate.value[votes.right])
    score: Floats = rule.first[votes.outcome] - (rule.first + rule.second)[votes.outcome] * chance
    return score


def _cluster_meat(score: Floats, votes: Votes, code: Ints, fit: BradleyTerryFit) -> Floats:
    """Σ over clusters of the outer product of summed score contributions: (K, K)."""
    rows, columns = np.concatenate([code, code]), np.concatenate([votes.left, votes.right])
    shape = (int(code.max(initial=-1)) + 1, fit.ranked.size)
    sums = coo_array((np.concatenate([score, -score]), (rows, columns)), shape=shape).tocsr()
    meat: Floats = (sums.T @ sums).toarray()
    return meat
