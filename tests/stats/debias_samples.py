"""Random samples and the slow, obvious estimator that the fast one is compared with."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np

from app.stats.debias import Clustering, CrossFit, Target
from app.stats.types import Floats, Ints, Rule, Sample, Votes

TERNARY = Rule(np.array([1.0, 0.0, 0.5]), np.array([0.0, 1.0, 0.5]))


@dataclass(frozen=True)
class Case:
    """A sample with the mu (V, u, K, K, C) of its fold models."""

    sample: Sample
    table: Floats

    def mu(self, fold: int, patterns: Ints) -> Floats:
        return self.table[fold, patterns]


def random_case(
    rng: np.random.Generator, *, n_items: int, n_rows: int, n_patterns: int = 4, battle: bool = False, n_folds: int = 3
) -> Case:
    """Rows with any number of votes (battle: at most one), voters shared across rows, contexts across rows."""
    n_votes = n_rows if battle else 3 * n_rows
    row = rng.permutation(n_rows)[: n_votes - n_rows // 5] if battle else rng.integers(0, n_rows, n_votes)
    left = rng.integers(0, n_items, row.size)
    right = (left + rng.integers(1, n_items, row.size)) % n_items
    votes = Votes(
        row,
        left,
        right,
        rng.integers(0, 3, row.size),
        rng.uniform(0.2, 1.0, row.size),
        rng.integers(0, max(2, n_rows // 3), row.size),
        rng.uniform(0.05, 1.0, row.size),
    )
    context = rng.integers(0, max(2, n_rows // 2), n_rows)
    fold, pattern = rng.integers(0, n_folds, n_rows), rng.integers(0, n_patterns, n_rows)
    sample = Sample(n_items, TERNARY, votes, context, fold, pattern)
    return Case(sample, rng.dirichlet(np.ones(3), size=(n_folds, n_patterns, n_items, n_items)) * 0.9 + 0.1 / 3)


def slow_parts(sample: Sample, mu: CrossFit, target: Target) -> tuple[Floats, Floats]:
    """F(mu(x_i)) (n, K) and each vote's weight/pi J (Y - mu) (m, K), with J = dF/dp ⊗ q written out."""
    values = np.zeros((sample.n_rows, sample.n_items))
    corrections = np.zeros((len(sample.votes), sample.n_items))
    for i in range(sample.n_rows):
        probabilities = mu(int(sample.fold[i]), sample.pattern[i : i + 1])
        values[i] = target.estimand.value(sample.rule.scores(probabilities), target.graph)[0]
    for v in range(len(sample.votes)):
        i = sample.votes.row[v]
        probabilities = mu(int(sample.fold[i]), sample.pattern[i : i + 1])
        j, k = sample.votes.left[v : v + 1], sample.votes.right[v : v + 1]
        slope = target.estimand.gradient_at(sample.rule.scores(probabilities), np.zeros(1, int), j, k, target.graph)[0]
        jacobian = np.outer(slope, sample.rule.gradient(probabilities)[0, j[0], k[0]])
        residual = np.eye(sample.rule.n_categories)[sample.votes.outcome[v]] - probabilities[0, j[0], k[0]]
        corrections[v] = sample.votes.weight[v] / sample.votes.propensity[v] * jacobian @ residual
    return values, corrections


def slow_estimate(case: Case, target: Target, clustering: Clustering) -> tuple[Floats, Floats]:
    """Score (K,) and covariance (K, K), cluster by cluster."""
    sample = case.sample
    values, corrections = slow_parts(sample, case.mu, target)
    score = (values.sum(axis=0) + corrections.sum(axis=0)) / sample.n_rows
    split = clustering.unit == "context" and clustering.by != "context"
    voter_of_row = {int(sample.votes.row[v]): int(sample.votes.voter[v]) for v in reversed(range(len(sample.votes)))}

    def covariance(name: str) -> Floats:
        clusters: dict[object, Floats] = defaultdict(lambda: np.zeros(sample.n_items))
        for i in range(sample.n_rows):
            clusters[_row_label(name, i)] += values[i] - score
        for v in range(len(sample.votes)):
            i, voter = int(sample.votes.row[v]), int(sample.votes.voter[v])
            part = {"voter": ("voter", voter), "row": ("part", i, voter)}
            label = part[name] if split and name in part else _row_label(name, i)
            clusters[label] += corrections[v]
        return sum(np.outer(each, each) for each in clusters.values()) / sample.n_rows**2

    def _row_label(name: str, i: int) -> object:
        if name == "context":
            return ("context", int(sample.context[i]))
        if name == "voter" and not split and i in voter_of_row:
            return ("voter", voter_of_row[i])
        return ("row", i)

    if clustering.by == "context":
        return score, covariance("row" if clustering.fixed else "context")
    if clustering.by == "voter" or clustering.fixed:
        return score, covariance("voter")
    return score, covariance("context") + covariance("voter") - covariance("row")
