"""Contextual Bradley-Terry: the likelihood's maximum, the ridge's worth, and what is not there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from app.stats.classical import count_cells, fit_bradley_terry
from app.stats.contextual_bt import GRID, Comparisons, fit_plug_in, fit_regularised
from app.stats.errors import NotIdentified
from app.stats.types import Floats, Rule, Sample
from tests.stats.debias_samples import random_case


def _drawn(
    rng: np.random.Generator, *, size: int, n_items: int, width: int, slope: float
) -> tuple[Comparisons, Floats]:
    """Comparisons under linear utilities, and θ (K, 1 + d)."""
    theta = rng.normal(size=(n_items, 1 + width)) * np.append(1.0, np.full(width, slope))
    theta -= theta.mean(axis=0)
    x = rng.normal(size=(size, width))
    left = rng.integers(0, n_items, size)
    right = (left + rng.integers(1, n_items, size)) % n_items
    design = np.concatenate([np.ones((size, 1)), x], axis=1)
    odds = (design * (theta[left] - theta[right])).sum(axis=1) + 0.3
    row = np.arange(size)
    won = rng.random(size) < expit(odds)
    return Comparisons(x, row, left, right, won, row % 5, np.ones(size), n_items), theta


def test_maximum_likelihood_finds_the_coefficients() -> None:
    comparisons, theta = _drawn(np.random.default_rng(0), size=20_000, n_items=4, width=2, slope=0.5)
    model = fit_plug_in(comparisons)
    assert abs(model.position - 0.3) < 0.06
    x = np.random.default_rng(1).normal(size=(50, 2))
    expected = np.concatenate([np.ones((50, 1)), x], axis=1) @ theta.T
    np.testing.assert_allclose(model.utilities(x), expected, atol=0.35)
    np.testing.assert_allclose(model.utilities(x).mean(axis=0), expected.mean(axis=0), atol=0.12)
    chances = model.chances(x)
    np.testing.assert_allclose(
        chances[:, 1, 2], expit(model.utilities(x)[:, 1] - model.utilities(x)[:, 2] + 0.3), atol=0.02
    )


def test_without_covariates_and_sides_it_is_the_classical_fit() -> None:
    """Every vote and its mirror image: the position's advantage is 0."""
    case = random_case(np.random.default_rng(2), n_items=4, n_rows=100)
    votes = case.sample.votes.take(case.sample.votes.outcome < 2)
    both = {name: np.concatenate([getattr(votes, name)] * 2) for name in votes.__slots__}
    mirrored = np.concatenate([votes.left, votes.right]), np.concatenate([votes.right, votes.left])
    both |= {"left": mirrored[0], "right": mirrored[1], "outcome": np.concatenate([votes.outcome, 1 - votes.outcome])}
    sample = replace(case.sample, votes=type(votes)(**both), pattern=np.zeros_like(case.sample.pattern))
    model = fit_plug_in(Comparisons.of(sample, np.zeros((1, 0))))
    counts = count_cells(sample.votes, 4, 3)
    np.testing.assert_allclose(
        model.utilities(np.zeros((1, 0)))[0], fit_bradley_terry(counts, sample.rule).estimate.value, atol=1e-4
    )
    assert abs(model.position) < 1e-5


def test_the_ridge_helps_where_covariates_are_many_and_weak() -> None:
    comparisons, theta = _drawn(np.random.default_rng(3), size=1500, n_items=6, width=20, slope=0.1)
    x = np.random.default_rng(4).normal(size=(2000, 20))
    true = np.concatenate([np.ones((2000, 1)), x], axis=1) @ theta.T
    plug_in, regularised = fit_plug_in(comparisons), fit_regularised(comparisons)
    errors = [((model.utilities(x) - true) ** 2).mean() for model in (plug_in, regularised)]
    assert errors[1] < 0.7 * errors[0]
    assert regularised.precision in GRID


def test_weak_and_strong_covariates_get_their_own_ridge() -> None:
    weak, _ = _drawn(np.random.default_rng(5), size=2000, n_items=5, width=10, slope=0.02)
    strong, _ = _drawn(np.random.default_rng(5), size=2000, n_items=5, width=10, slope=1.0)
    assert fit_regularised(weak).precision > 3 * fit_regularised(strong).precision


def test_items_that_won_everything_or_never_played_stay_finite() -> None:
    comparisons, _ = _drawn(np.random.default_rng(6), size=200, n_items=3, width=1, slope=0.1)
    first = (comparisons.left == 0) | (comparisons.right == 0)
    model = fit_plug_in(replace(comparisons, won=np.where(first, comparisons.left == 0, comparisons.won), n_items=4))
    utilities = model.utilities(comparisons.x)
    assert np.isfinite(utilities).all()
    assert (utilities.argmax(axis=1) == 0).all()


def test_missing_covariates_count_as_average() -> None:
    comparisons, _ = _drawn(np.random.default_rng(7), size=400, n_items=3, width=2, slope=0.5)
    gaps = comparisons.x.copy()
    gaps[::4, 0] = np.nan
    model = fit_regularised(replace(comparisons, x=gaps))
    centre = np.append(np.nan, 0.0)[None]
    np.testing.assert_allclose(model.utilities(centre), model.utilities(np.array([[np.nanmean(gaps[:, 0]), 0.0]])))


def test_votes_that_decide_nothing_are_left_out() -> None:
    case = random_case(np.random.default_rng(8), n_items=3, n_rows=40)
    x = np.random.default_rng(9).normal(size=(4, 2))
    comparisons = Comparisons.of(case.sample, x)
    assert comparisons.weight.sum() == (case.sample.votes.outcome < 2).sum()
    cell = comparisons.fold, comparisons.pattern, comparisons.left, comparisons.right, comparisons.won
    assert np.unique(np.stack(cell), axis=1).shape[1] == len(comparisons.won)
    tied = case.sample.votes.take(case.sample.votes.outcome == 2)
    with pytest.raises(NotIdentified, match="decisive"):
        Comparisons.of(replace(case.sample, votes=tied), x)
    even: Sample = replace(case.sample, rule=Rule(np.full(3, 0.5), np.full(3, 0.5)))
    with pytest.raises(NotIdentified, match="decisive"):
        Comparisons.of(even, x)
