"""Joint regions, differences and the first places: known answers, slow twins, seeded coverage."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, f_oneway, norm

from app.stats.errors import InvalidInput
from app.stats.inference import (
    IntervalKind,
    bands,
    differences,
    ellipsoid,
    equality_test,
    probability_best,
    probability_top,
    rank_intervals,
    select,
    surely_better,
)
from app.stats.types import Estimate, Floats


def centred(size: int) -> Floats:
    return np.eye(size) - 1.0 / size


def random_estimate(seed: int, size: int) -> Estimate:
    """Scores that sum to zero, as Bradley-Terry scores do."""
    rng = np.random.default_rng(seed)
    loadings = centred(size) @ rng.normal(size=(size, size)) / 10
    return Estimate(centred(size) @ rng.normal(size=size), loadings @ loadings.T, 400)


def test_the_statistic_is_the_mahalanobis_distance() -> None:
    covariance = np.array([[2.0, 0.5], [0.5, 1.0]])
    region = ellipsoid(Estimate(np.array([1.0, 2.0]), covariance, 10), level=0.9)
    theta = np.array([0.2, 3.0])
    deviation = theta - region.centre
    assert region.statistic(theta) == pytest.approx(deviation @ np.linalg.inv(covariance) @ deviation)
    assert region.radius == pytest.approx(chi2.ppf(0.9, 2))
    assert region.degrees == 2
    inside = region.centre + deviation * np.sqrt(0.999 * region.radius / region.statistic(theta))
    outside = region.centre + deviation * np.sqrt(1.001 * region.radius / region.statistic(theta))
    assert (region.holds(inside), region.holds(outside)) == (True, False)


def test_scores_with_a_fixed_sum_lose_a_degree_of_freedom() -> None:
    estimate = random_estimate(1, 5)
    region = ellipsoid(estimate)
    assert region.degrees == 4
    pinned = np.linalg.pinv(estimate.covariance, rcond=1e-10, hermitian=True)
    theta = centred(5) @ np.arange(5.0)
    expected = (theta - estimate.value) @ pinned @ (theta - estimate.value)
    assert region.statistic(theta) == pytest.approx(expected)
    assert region.statistic(theta + 0.1) == np.inf
    assert region.statistic(estimate.value + 1e-13) == pytest.approx(0.0, abs=1e-9)


def test_the_region_covers_a_singular_normal_with_its_level() -> None:
    rng = np.random.default_rng(2)
    mix = centred(6) @ rng.normal(size=(6, 6))
    draws = rng.normal(size=(4000, 6)) @ mix.T
    truth = np.zeros(6)
    hits = sum(ellipsoid(Estimate(value, mix @ mix.T, 100)).holds(truth) for value in draws)
    assert abs(hits / 4000 - 0.95) < 4 * np.sqrt(0.05 * 0.95 / 4000)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 8))
def test_scheffe_intervals_are_the_shadows_of_the_region(seed: int, size: int) -> None:
    estimate = random_estimate(seed, size)
    region, band = ellipsoid(estimate), bands(estimate, kind="ellipsoid")
    for item in range(size):
        # The point of the region that is highest in this coordinate.
        edge = estimate.covariance[:, item] / estimate.standard_error[item] * np.sqrt(region.radius)
        assert band.upper[item] == pytest.approx(estimate.value[item] + edge[item])
        assert region.statistic(estimate.value + edge) == pytest.approx(region.radius)
    assert band.critical >= bands(estimate).critical - 0.02


def test_scheffe_covers_every_combination_and_max_t_does_not() -> None:
    rng = np.random.default_rng(3)
    draws = rng.normal(size=(4000, 8))
    # Each draw's own direction is the worst combination of all.
    worst = np.linalg.norm(draws, axis=1)
    estimate = Estimate(np.zeros(8), np.eye(8), 100)
    covered = (worst <= bands(estimate, kind="ellipsoid").critical).mean()
    assert abs(covered - 0.95) < 4 * np.sqrt(0.05 * 0.95 / 4000)
    assert (worst <= bands(estimate).critical).mean() < 0.6


def test_one_score_needs_no_correction_and_none_no_width() -> None:
    assert bands(Estimate(np.zeros(1), np.eye(1), 10), kind="ellipsoid").critical == pytest.approx(norm.ppf(0.975))
    certain = Estimate(np.array([1.0, 2.0]), np.zeros((2, 2)), 10)
    np.testing.assert_array_equal(bands(certain, kind="ellipsoid").upper, certain.value)
    region = ellipsoid(certain)
    assert (region.degrees, region.holds(certain.value), region.holds(certain.value + 1)) == (0, True, False)


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_impossible_levels_are_refused(level: float) -> None:
    estimate = Estimate(np.zeros(2), np.eye(2), 10)
    with pytest.raises(InvalidInput):
        ellipsoid(estimate, level=level)
    with pytest.raises(InvalidInput):
        differences(estimate, level=level)


def test_equality_of_independent_means_is_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(4)
    groups = rng.normal(0.1 * np.arange(4)[:, None], size=(4, 5000))
    pooled = groups.var(axis=1, ddof=1).mean()
    test = equality_test(Estimate(groups.mean(axis=1), np.eye(4) * pooled / 5000, 20_000))
    known = f_oneway(*groups)
    assert test.degrees == 3
    assert test.statistic == pytest.approx(3 * known.statistic)
    assert test.p_value == pytest.approx(chi2.sf(3 * known.statistic, 3))


def test_equality_is_rejected_with_its_level_and_whatever_moves_all_alike_is_no_difference() -> None:
    rng = np.random.default_rng(5)
    covariance = 25.0 + centred(5) / 100
    draws = rng.normal(size=(2000, 5)) @ centred(5) / 10 + 5 * rng.normal(size=(2000, 1))
    p = np.array([equality_test(Estimate(value, covariance, 100)).p_value for value in draws])
    assert abs((p < 0.05).mean() - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 2000)
    assert equality_test(Estimate(np.array([0.5, 0, 0, 0, 0]), covariance, 100)).p_value < 0.001


def test_equality_does_not_depend_on_the_order_of_items() -> None:
    estimate = random_estimate(6, 5)
    first, again = equality_test(estimate), equality_test(select(estimate, np.array([3, 1, 4, 0, 2])))
    assert first.statistic == pytest.approx(again.statistic)


def test_equality_of_what_is_known_or_alone() -> None:
    certain = Estimate(np.array([1.0, 2.0]), np.zeros((2, 2)), 10)
    assert (equality_test(certain).statistic, equality_test(certain).p_value) == (np.inf, 0.0)
    assert equality_test(Estimate(np.ones(2), np.zeros((2, 2)), 10)).p_value == 1.0
    assert equality_test(Estimate(np.ones(1), np.eye(1), 10)).p_value == 1.0


def test_differences_hold_together_and_marginal_ones_do_not() -> None:
    rng = np.random.default_rng(7)
    mix = centred(6) @ rng.normal(size=(6, 6)) / 10
    truth = np.array([0.3, 0.1, 0.1, 0.0, -0.2, -0.3])
    together = {
        kind: differences(Estimate(truth, mix @ mix.T, 100), kind=kind) for kind in ("simultaneous", "marginal")
    }
    draws = rng.normal(size=(4000, 6)) @ mix.T
    gaps = np.abs(draws[:, :, None] - draws[:, None, :])
    covered = {kind: (gaps <= each.reach + 1e-12).all(axis=(1, 2)).mean() for kind, each in together.items()}
    assert abs(covered["simultaneous"] - 0.95) < 4 * np.sqrt(0.05 * 0.95 / 4000) + 0.003
    assert covered["marginal"] < 0.85


@pytest.mark.parametrize("kind", ["simultaneous", "anytime"])
def test_differences_are_antisymmetric_with_errors_of_contrasts(kind: IntervalKind) -> None:
    estimate = random_estimate(8, 5)
    found = differences(estimate, kind=kind, level=0.9)
    np.testing.assert_allclose(found.value, -found.value.T)
    for j, k in combinations(range(5), 2):
        contrast = np.eye(5)[j] - np.eye(5)[k]
        assert found.error[j, k] == pytest.approx(np.sqrt(contrast @ estimate.covariance @ contrast))
        sure = found.value[j, k] > found.critical * found.error[j, k]
        assert found.better[j, k] == sure
    assert not (found.better & found.better.T).any()


def test_anytime_differences_share_the_error_over_all_pairs() -> None:
    n, rho, pairs = 1000, 0.05, 10
    scaled = n * rho**2
    expected = np.sqrt(2 * (scaled + 1) / scaled * np.log(np.sqrt(scaled + 1) * pairs / 0.05))
    assert differences(Estimate(np.zeros(5), np.eye(5), n), kind="anytime").critical == pytest.approx(expected)


def test_a_board_that_is_watched_needs_anytime_ranks() -> None:
    runs, looks, items = 300, np.arange(50, 2001, 50), 4
    wrong = {"anytime": 0, "simultaneous": 0}
    critical = {
        (kind, n): differences(Estimate(np.zeros(items), np.eye(items) / n, int(n)), kind=kind).critical
        for kind in ("anytime", "simultaneous")
        for n in looks.tolist()
    }
    for seed in range(runs):
        rows = np.random.default_rng(seed).normal(size=(looks[-1], items))
        mean = np.cumsum(rows, axis=0)[looks - 1] / looks[:, None]
        spread = (mean.max(axis=1) - mean.min(axis=1)) * np.sqrt(looks / 2)
        for kind in ("anytime", "simultaneous"):
            wrong[kind] += any(spread[at] > critical[kind, n] for at, n in enumerate(looks.tolist()))
    assert wrong["anytime"] <= runs * 0.05 + 2 * np.sqrt(runs * 0.05 * 0.95)
    assert wrong["simultaneous"] >= 0.12 * runs


def test_rank_intervals_follow_the_kind_of_the_differences() -> None:
    gap = differences(Estimate(np.zeros(2), np.eye(2), 1000)).critical * np.sqrt(2) * 1.05
    estimate = Estimate(np.array([gap, 0.0]), np.eye(2), 1000)
    assert [each.tolist() for each in rank_intervals(estimate)] == [[1, 2], [1, 2]]
    assert [each.tolist() for each in rank_intervals(estimate, kind="anytime")] == [[1, 1], [2, 2]]
    assert not surely_better(estimate, kind="anytime").any()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_chances_of_the_first_places_are_those_of_counting(size: int) -> None:
    estimate = random_estimate(9, 5)
    draws = np.random.default_rng(10).multivariate_normal(estimate.value, estimate.covariance, 20_000, method="eigh")
    place = (draws[:, None, :] > draws[:, :, None]).sum(axis=2)
    chance = probability_top(estimate, size)
    np.testing.assert_allclose(chance, (place < size).mean(axis=0), atol=0.015)
    assert chance.sum() == pytest.approx(size)


def test_chances_grow_with_the_number_of_places_and_fill_them() -> None:
    estimate = random_estimate(11, 6)
    chances = np.array([probability_top(estimate, size) for size in range(1, 8)])
    assert (np.diff(chances, axis=0) >= 0).all()
    np.testing.assert_allclose(chances.sum(axis=1), [1, 2, 3, 4, 5, 6, 6])
    np.testing.assert_array_equal(chances[0], probability_best(estimate))


def test_ties_share_the_last_places() -> None:
    certain = Estimate(np.array([3.0, 1.0, 1.0, 1.0, 0.0]), np.zeros((5, 5)), 1)
    np.testing.assert_allclose(probability_top(certain, 2), [1, 1 / 3, 1 / 3, 1 / 3, 0])
    np.testing.assert_allclose(probability_top(certain, 3), [1, 2 / 3, 2 / 3, 2 / 3, 0])
