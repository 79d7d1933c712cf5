"""Classical Bradley-Terry against independent fits, its errors against brute force, its statuses."""

from __future__ import annotations

import choix
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from app.stats import classical
from app.stats.classical import clustered, count_cells, fit_bradley_terry
from app.stats.errors import InvalidInput, NotConverged
from app.stats.types import Floats, Ints, Rule, Votes

BINARY = Rule(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
ARENA = Rule(np.array([1.0, 0.0, 0.5, 0.5]), np.array([0.0, 1.0, 0.5, 0.5]))


def random_votes(rng: np.random.Generator, size: int, n_items: int, rule: Rule) -> Votes:
    left = rng.integers(0, n_items, size)
    right = (left + rng.integers(1, n_items, size)) % n_items
    strength = np.linspace(-1, 1, n_items)
    decided = rng.random(size) < expit(strength[left] - strength[right])
    drawn = rng.random(size) < 0.3
    outcome = np.where(drawn & (rule.n_categories > 2), rng.integers(2, max(rule.n_categories, 3), size), 1 - decided)
    row = np.arange(size)
    return Votes(row, left, right, outcome.astype(np.int64), np.ones(size), row, np.ones(size))


def cells(wins: Floats) -> Floats:
    """Binary counts in which j, shown left, beat k wins[j, k] times."""
    return np.stack([wins, np.zeros_like(wins)], axis=2)


def test_scores_equal_choix_on_expanded_votes() -> None:
    votes = random_votes(np.random.default_rng(1), 2000, 6, BINARY)
    won = np.where(votes.outcome == 0, votes.left, votes.right)
    lost = np.where(votes.outcome == 0, votes.right, votes.left)
    reference = choix.opt_pairwise(6, list(zip(won.tolist(), lost.tolist(), strict=True)), alpha=0.0, tol=1e-12)
    fit = fit_bradley_terry(count_cells(votes, 6, 2), BINARY)
    np.testing.assert_allclose(fit.estimate.value, reference - reference.mean(), atol=1e-6)
    assert fit.gap <= 1e-10
    assert fit.ranked.all()
    assert fit.estimate.n_rows == 2000


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 2**32 - 1), n_items=st.integers(2, 8))
def test_scores_maximise_the_likelihood_with_ties_as_half_wins(seed: int, n_items: int) -> None:
    votes = random_votes(np.random.default_rng(seed), 60 * n_items, n_items, ARENA)
    first, second = ARENA.first[votes.outcome], ARENA.second[votes.outcome]

    def loss(scores: Floats) -> float:
        gap = scores[votes.left] - scores[votes.right]
        return float(-(first * log_expit(gap) + second * log_expit(-gap)).sum() + scores.sum() ** 2)

    reference = minimize(loss, np.zeros(n_items), method="BFGS", options={"gtol": 1e-6})
    fit = fit_bradley_terry(count_cells(votes, n_items, 4), ARENA)
    np.testing.assert_allclose(fit.estimate.value, reference.x - reference.x.mean(), atol=1e-5)
    assert loss(fit.estimate.value) <= reference.fun + 1e-9


def test_two_items_have_the_closed_form() -> None:
    wins = np.array([[0.0, 30.0], [10.0, 0.0]])
    fit = fit_bradley_terry(cells(wins), BINARY)
    np.testing.assert_allclose(fit.estimate.value, [np.log(3) / 2, -np.log(3) / 2], atol=1e-12)
    difference = np.array([1.0, -1.0])
    assert difference @ fit.estimate.covariance @ difference == pytest.approx(1 / (40 * 0.75 * 0.25))


def slow_sandwich(fit: classical.BradleyTerryFit, votes: Votes, rule: Rule, label: Ints) -> Floats:
    value, size = fit.estimate.value, fit.ranked.size
    information, sums = np.zeros((size, size)), {}
    for j, k, c, cluster in zip(votes.left, votes.right, votes.outcome, label, strict=True):
        direction = np.eye(size)[j] - np.eye(size)[k]
        chance, total = expit(value[j] - value[k]), rule.first[c] + rule.second[c]
        information += total * chance * (1 - chance) * np.outer(direction, direction)
        sums[cluster] = sums.get(cluster, 0.0) + (rule.first[c] - total * chance) * direction
    inverse = np.linalg.pinv(information, hermitian=True, rcond=1e-10)
    return inverse @ sum(np.outer(s, s) for s in sums.values()) @ inverse


@pytest.mark.parametrize("rule", [BINARY, ARENA, Rule(np.array([1.0, 0.0, 0.3]), np.array([0.0, 1.0, 0.3]))])
def test_sandwich_equals_the_sum_over_single_votes(rule: Rule) -> None:
    votes = random_votes(np.random.default_rng(2), 300, 4, rule)
    fit = fit_bradley_terry(count_cells(votes, 4, rule.n_categories), rule)
    np.testing.assert_allclose(fit.estimate.covariance, slow_sandwich(fit, votes, rule, votes.row), atol=1e-12)
    np.testing.assert_allclose(clustered(fit, votes, rule, votes.row).covariance, fit.estimate.covariance, atol=1e-12)
    voter = votes.row % 7 - 3
    slow = slow_sandwich(fit, votes, rule, voter)
    np.testing.assert_allclose(clustered(fit, votes, rule, voter).covariance, slow, atol=1e-12)


def test_two_way_clusters_add_up() -> None:
    rng = np.random.default_rng(3)
    votes = random_votes(rng, 4000, 4, ARENA)
    fit = fit_bradley_terry(count_cells(votes, 4, 4), ARENA)
    context, voter = rng.integers(0, 900, 4000), rng.integers(0, 800, 4000)
    parts = [slow_sandwich(fit, votes, ARENA, label) for label in (context, voter, context * 1000 + voter)]
    both = clustered(fit, votes, ARENA, context, voter)
    np.testing.assert_allclose(both.covariance, parts[0] + parts[1] - parts[2], atol=1e-12)
    # Votes clustered twice by the same label are clustered once.
    twice = clustered(fit, votes, ARENA, voter, voter)
    np.testing.assert_allclose(twice.covariance, parts[1], atol=1e-12)


def test_intervals_of_repeated_boards_cover() -> None:
    rng, strength = np.random.default_rng(4), np.linspace(-1, 1, 5)
    hits = 0
    for _ in range(400):
        fit = fit_bradley_terry(count_cells(random_votes(rng, 400, 5, BINARY), 5, 2), BINARY)
        hits += bool(abs(fit.estimate.value[0] - strength[0]) < 1.96 * fit.estimate.standard_error[0])
    assert abs(hits / 400 - 0.95) < 3 * np.sqrt(0.05 * 0.95 / 400)


def test_an_undefeated_item_is_separated_and_leaves_the_others_alone() -> None:
    rng = np.random.default_rng(5)
    wins = rng.integers(1, 30, (5, 5)).astype(float)
    wins[:, 2] = 0.0
    fit = fit_bradley_terry(cells(wins), BINARY)
    assert fit.separated.tolist() == [False, False, True, False, False]
    assert fit.ranked.tolist() == [True, True, False, True, True]
    others = [0, 1, 3, 4]
    alone = fit_bradley_terry(cells(wins[np.ix_(others, others)]), BINARY)
    np.testing.assert_allclose(fit.estimate.value[others], alone.estimate.value, atol=1e-12)
    np.testing.assert_allclose(fit.estimate.covariance[np.ix_(others, others)], alone.estimate.covariance, atol=1e-12)
    met = wins[np.ix_(others, others)]
    assert fit.estimate.n_rows == alone.estimate.n_rows == met.sum() - np.trace(met)


def test_the_finite_differences_are_the_limit_of_a_vanishing_prior() -> None:
    wins = np.array([[0, 3, 9, 9], [2, 0, 9, 9], [0, 0, 0, 7], [0, 0, 8, 0]], dtype=float)
    fit = fit_bradley_terry(cells(wins), BINARY)
    assert fit.ranked.tolist() == [False, False, True, True]
    assert fit.separated.tolist() == [True, True, False, False]
    prior = fit_bradley_terry(cells(wins + 1e-6), BINARY).estimate.value
    assert fit.estimate.value[2] - fit.estimate.value[3] == pytest.approx(prior[2] - prior[3], abs=1e-5)


def test_items_without_a_link_are_neither_ranked_nor_separated() -> None:
    wins = np.zeros((6, 6))
    wins[0, 1], wins[1, 0], wins[2, 3], wins[3, 2], wins[3, 4] = 2, 2, 9, 3, 50
    fit = fit_bradley_terry(cells(wins), BINARY)
    assert fit.ranked.tolist() == [False, False, True, True, False, False]
    assert fit.separated.tolist() == [False, False, False, False, True, False]


@pytest.mark.parametrize("wins", [np.zeros((3, 3)), np.triu(np.full((3, 3), 5.0), 1), np.zeros((1, 1)), np.eye(3)])
def test_without_two_comparable_items_nobody_is_ranked(wins: Floats) -> None:
    fit = fit_bradley_terry(cells(wins), BINARY)
    assert not fit.ranked.any()
    assert not fit.estimate.value.any()
    assert not fit.estimate.covariance.any()
    # Votes of an item against itself are no comparison.
    assert fit.separated.tolist() == [np.triu(wins, 1).any()] * len(wins)


@settings(deadline=None, max_examples=100)
@given(seed=st.integers(0, 2**32 - 1), n_items=st.integers(3, 11))
def test_counts_over_many_orders_of_magnitude_converge(seed: int, n_items: int) -> None:
    rng = np.random.default_rng(seed)
    wins = (
        np.ceil(np.exp(np.minimum(rng.normal(0, 6, (n_items, n_items)), 14)) * 2)
        / 2
        * (rng.random((n_items,) * 2) < 0.3)
    )
    ring = np.arange(n_items), np.roll(np.arange(n_items), 1)
    wins[ring] = np.ceil(np.exp(np.minimum(rng.normal(-2, 8, n_items), 14))) / 2
    fit = fit_bradley_terry(cells(wins), BINARY)
    assert fit.ranked.all()
    assert fit.gap <= 1e-10
    chance = expit(fit.estimate.value[:, None] - fit.estimate.value)
    np.fill_diagonal(wins, 0.0)
    met = wins + wins.T
    np.testing.assert_allclose(wins.sum(axis=1), (met * chance).sum(axis=1), atol=2e-10 * met.sum(axis=1).max())
    assert np.isfinite(fit.estimate.covariance).all()


def test_counts_on_which_full_newton_steps_diverge_converge() -> None:
    wins = np.array([[0, 1, 0, 1], [100_000, 0, 10, 0], [10, 0, 0, 200_000], [10_001, 1, 1, 0]], dtype=float)
    fit = fit_bradley_terry(cells(wins), BINARY)
    assert fit.gap <= 1e-10
    # Half steps all the way would need thirty at least.
    assert fit.steps < 30


def test_dropped_categories_count_for_nothing() -> None:
    rule = Rule(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    votes = random_votes(np.random.default_rng(7), 500, 3, rule)
    counts = count_cells(votes, 3, 3)
    fit, decided = fit_bradley_terry(counts, rule), fit_bradley_terry(counts[:, :, :2], BINARY)
    np.testing.assert_allclose(fit.estimate.value, decided.estimate.value, atol=1e-12)
    np.testing.assert_allclose(fit.estimate.covariance, decided.estimate.covariance, atol=1e-12)
    assert fit.estimate.n_rows == decided.estimate.n_rows < 500


def test_two_way_clusters_leave_no_negative_variance() -> None:
    outcome, row = np.array([0, 1, 1, 0]), np.arange(4)
    votes = Votes(row, row * 0, row * 0 + 1, outcome, np.ones(4), row, np.ones(4))
    fit = fit_bradley_terry(count_cells(votes, 2, 2), BINARY)
    both = clustered(fit, votes, BINARY, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    np.testing.assert_allclose(both.covariance, 0.0, atol=1e-15)


def test_relabelling_permutes_the_scores() -> None:
    rng = np.random.default_rng(6)
    counts = rng.integers(1, 20, (7, 7, 4)).astype(float)
    new = rng.permutation(7)
    base, other = fit_bradley_terry(counts, ARENA), fit_bradley_terry(counts[np.ix_(new, new)], ARENA)
    np.testing.assert_allclose(other.estimate.value, base.estimate.value[new], atol=1e-12)
    np.testing.assert_allclose(other.estimate.covariance, base.estimate.covariance[np.ix_(new, new)], atol=1e-12)


def test_a_solver_that_stops_early_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classical, "MOST_STEPS", 1)
    with pytest.raises(NotConverged) as failure:
        fit_bradley_terry(cells(np.array([[0, 9.0], [1, 0]])), BINARY)
    assert failure.value.gap > failure.value.tolerance


def test_counts_must_fit_the_rule() -> None:
    with pytest.raises(InvalidInput):
        fit_bradley_terry(np.zeros((3, 3, 2)), ARENA)
