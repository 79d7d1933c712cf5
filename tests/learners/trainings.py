"""Votes to learn from, drawn from boards whose mu is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from app.stats.simulate.generator import Generator
from app.stats.types import Covariates, Floats, Ints, OutcomeModel, Rule, Training

RULES = {
    "binary": Rule(np.array([1.0, 0.0]), np.array([0.0, 1.0])),
    "ternary": Rule(np.array([1.0, 0.0, 0.5]), np.array([0.0, 1.0, 0.5])),
    "dropped": Rule(np.array([1.0, 0.0, 0.5, 0.0]), np.array([0.0, 1.0, 0.5, 0.0])),
    "graded": Rule(np.array([1.0, 0.75, 0.5, 0.25, 0.0]), np.array([0.0, 0.25, 0.5, 0.75, 1.0])),
    "without anchors": Rule(np.array([0.8, 0.2]), np.array([0.2, 0.8])),
    "two of a kind": Rule(np.array([1.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])),
}


def drawn(board: Generator, n_rows: int, *, seed: int) -> Training:
    """All votes of a simulated board, a context a group."""
    draws = board.draw(n_rows, seed=seed)
    votes = draws.votes
    x = Covariates(draws.x)
    return training_of(x, (votes.row, votes.left, votes.right, votes.outcome), n_items=board.n_items, rule=board.rule)


def training_of(x: Covariates, votes: tuple[Ints, Ints, Ints, Ints], *, n_items: int, rule: Rule) -> Training:
    """Votes (pattern, left, right, outcome) of weight 1, a pattern a group."""
    pattern, left, right, outcome = votes
    return Training(x, pattern, left, right, outcome, np.ones(left.size), pattern, n_items, rule)


def scattered(rule: Rule, size: tuple[int, int, int], *, seed: int) -> Training:
    """(votes, K, d) = size of pure noise, a third of the covariates missing, patterns repeating."""
    n_votes, n_items, width = size
    generator = np.random.default_rng(seed)
    patterns = max(n_votes // 2, 1)
    x = generator.normal(size=(patterns, width))
    x[generator.random(x.shape) < 0.3] = np.nan
    left = generator.integers(n_items, size=n_votes)
    right = (left + 1 + generator.integers(n_items - 1, size=n_votes)) % n_items
    votes = generator.integers(patterns, size=n_votes), left, right, generator.integers(rule.n_categories, size=n_votes)
    return training_of(Covariates(x), votes, n_items=n_items, rule=rule)


def error(model: OutcomeModel, board: Generator, *, points: int = 2000) -> float:
    """Root mean squared error of mu over fresh contexts and all ordered pairs."""
    x = board.covariates(np.random.default_rng(20).random((points, board.n_covariates)))
    pairs = ~np.eye(board.n_items, dtype=bool)
    off: Floats = (model.probabilities(Covariates(x)) - board.probabilities(x))[:, pairs]
    return float(np.sqrt((off**2).mean()))


def slope_by_differences(function: Callable[[Floats], float], w: Floats, *, step: float = 1e-6) -> Floats:
    """Central differences of a scalar function."""
    steps = step * np.eye(w.size)
    return np.array([(function(w + each) - function(w - each)) / (2 * step) for each in steps])
