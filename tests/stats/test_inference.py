"""Intervals, ranks, the chance of being best and other scales: known quantiles, invariants, seeded coverage."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm, studentized_range

from app.stats.errors import InvalidInput
from app.stats.inference import (
    IntervalKind,
    against,
    bands,
    elo,
    open_neighbours,
    probability_best,
    rank_intervals,
    ranks,
    select,
    surely_better,
)
from app.stats.inference.ranks import difference_max_t
from app.stats.types import Estimate, Floats

FIXED: tuple[IntervalKind, ...] = ("simultaneous", "marginal", "bonferroni", "sidak")
KINDS: tuple[IntervalKind, ...] = (*FIXED, "ellipsoid", "anytime")


def centred(size: int) -> Floats:
    return np.eye(size) - 1.0 / size


def random_estimate(rng: np.random.Generator, size: int, rank: int) -> Estimate:
    loadings = rng.normal(size=(size, rank))
    return Estimate(rng.normal(size=size), loadings @ loadings.T / 50, 100)


def test_critical_values_of_independent_scores_are_the_known_ones() -> None:
    estimate = Estimate(np.zeros(4), np.diag([1.0, 2.0, 3.0, 4.0]), 10)
    expected = {
        "marginal": norm.ppf(0.975),
        "bonferroni": norm.ppf(1 - 0.05 / 8),
        "sidak": norm.ppf((1 + 0.95**0.25) / 2),
        "simultaneous": norm.ppf((1 + 0.95**0.25) / 2),
    }
    for kind in FIXED:
        assert bands(estimate, kind=kind).critical == pytest.approx(expected[kind], abs=0.01)


def test_anytime_intervals_follow_the_formula() -> None:
    estimate = Estimate(np.zeros(4), np.eye(4) / 1000, 1000)
    expected = np.sqrt(2 * (2.5 + 1) / 2.5 * np.log(np.sqrt(2.5 + 1) / (0.05 / 4)))
    assert bands(estimate, kind="anytime").critical == pytest.approx(expected)


def test_a_board_that_is_watched_needs_anytime_intervals() -> None:
    runs, looks, items = 400, np.arange(50, 2001, 50), 3
    missed: Counter[str] = Counter()
    for seed in range(runs):
        rows = np.random.default_rng(seed).normal(size=(looks[-1], items))
        mean = np.cumsum(rows, axis=0)[looks - 1] / looks[:, None]
        for kind in ("anytime", "bonferroni"):
            reach = [bands(Estimate(mean[at], np.eye(items) / n, int(n)), kind=kind) for at, n in enumerate(looks)]
            missed[kind] += any((band.lower > 0).any() or (band.upper < 0).any() for band in reach)
    assert missed["anytime"] <= runs * 0.05 + 2 * np.sqrt(runs * 0.05 * 0.95)
    assert missed["bonferroni"] >= 0.12 * runs


def test_band_ends_are_critical_standard_errors_away() -> None:
    estimate = Estimate(np.array([1.0, 2.0]), np.diag([4.0, 9.0]), 10)
    marginal = bands(estimate, kind="marginal", level=0.9)
    np.testing.assert_allclose(marginal.upper, [1 + 2 * norm.ppf(0.95), 2 + 3 * norm.ppf(0.95)])
    np.testing.assert_allclose(marginal.lower, [1 - 2 * norm.ppf(0.95), 2 - 3 * norm.ppf(0.95)])


@pytest.mark.parametrize("covariance", [np.ones((3, 3)), centred(2), np.array([[1e-8]])])
def test_scores_with_one_source_of_noise_need_no_correction(covariance: Floats) -> None:
    assert bands(Estimate(np.zeros(len(covariance)), covariance, 10)).critical == pytest.approx(
        norm.ppf(0.975), abs=1e-6
    )


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 12), rank=st.integers(1, 12))
def test_simultaneous_lies_between_marginal_and_bonferroni(seed: int, size: int, rank: int) -> None:
    estimate = random_estimate(np.random.default_rng(seed), size, rank)
    marginal, joint, bonferroni = (bands(estimate, kind=k).critical for k in ("marginal", "simultaneous", "bonferroni"))
    assert marginal - 1e-6 <= joint <= bonferroni + 0.02


def test_simultaneous_covers_jointly_on_a_singular_covariance() -> None:
    rng = np.random.default_rng(1)
    mix = centred(8) @ rng.normal(size=(8, 8))
    estimate = Estimate(np.zeros(8), mix @ mix.T, 100)
    joint, marginal = bands(estimate), bands(estimate, kind="marginal")
    draws = rng.normal(size=(40_000, 8)) @ mix.T
    covered = ((draws > joint.lower) & (draws < joint.upper)).all(axis=1).mean()
    assert abs(covered - 0.95) < 3 * np.sqrt(0.05 * 0.95 / 40_000) + 0.003
    assert ((draws > marginal.lower) & (draws < marginal.upper)).all(axis=1).mean() < 0.85


def test_a_score_without_error_has_an_interval_of_no_width_and_costs_nothing() -> None:
    covariance = np.zeros((3, 3))
    covariance[1, 1] = covariance[2, 2] = 1.0
    for kind in KINDS:
        fixed = bands(Estimate(np.array([5.0, 0.0, 0.0]), covariance, 10), kind=kind)
        assert fixed.lower[0] == fixed.upper[0] == 5.0
        alone = bands(Estimate(np.zeros(2), np.eye(2), 10), kind=kind)
        assert fixed.critical == pytest.approx(alone.critical, abs=1e-9)


def test_no_variance_at_all_is_no_failure() -> None:
    certain = Estimate(np.array([0.0, 1.0, 1.0]), np.zeros((3, 3)), 1)
    np.testing.assert_array_equal(bands(certain).lower, certain.value)
    best, worst = rank_intervals(certain)
    assert best.tolist() == [3, 1, 1]
    assert worst.tolist() == [3, 2, 2]
    np.testing.assert_array_equal(probability_best(certain), [0.0, 0.5, 0.5])


@pytest.mark.parametrize("level", [0.0, 1.0, 95.0])
def test_impossible_levels_are_refused(level: float) -> None:
    with pytest.raises(InvalidInput):
        bands(Estimate(np.zeros(2), np.eye(2), 10), level=level)


def test_ties_share_a_rank() -> None:
    assert ranks(np.array([0.5, 0.9, 0.5 + 1e-12, 0.1])).tolist() == [2, 1, 2, 4]


@pytest.mark.parametrize("size", [3, 10, 50])
def test_differences_of_equal_models_follow_the_studentised_range(size: int) -> None:
    critical = studentized_range.ppf(0.95, size, np.inf) / np.sqrt(2)
    value = np.zeros(size)
    for gap, sure in ((critical * 0.99, False), (critical * 1.01, True)):
        value[0] = gap * np.sqrt(2)
        estimate = Estimate(value, np.eye(size), 100)
        assert surely_better(estimate)[0, 1:].all() == sure


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(2, 10), kind=st.sampled_from(KINDS))
def test_rank_intervals_hold_the_rank_and_follow_the_labels(seed: int, size: int, kind: IntervalKind) -> None:
    rng = np.random.default_rng(seed)
    estimate = random_estimate(rng, size, size)
    best, worst = rank_intervals(estimate, kind=kind)
    rank = ranks(estimate.value)
    assert ((best >= 1) & (best <= rank) & (rank <= worst) & (worst <= size)).all()
    new = rng.permutation(size)
    again = select(estimate, new)
    np.testing.assert_array_equal(rank_intervals(again, kind=kind), (best[new], worst[new]))
    np.testing.assert_allclose(bands(again, kind=kind).upper, bands(estimate, kind=kind).upper[new], atol=1e-6)
    np.testing.assert_allclose(probability_best(again), probability_best(estimate)[new], atol=1e-3)


def test_a_clear_order_leaves_no_rank_open() -> None:
    best, worst = rank_intervals(Estimate(np.array([3.0, 1.0, 2.0]), np.eye(3) * 1e-4, 100))
    assert best.tolist() == worst.tolist() == [1, 3, 2]


def test_equal_models_are_rarely_separated_by_us_and_often_by_upper_bounds() -> None:
    rng = np.random.default_rng(3)
    covariance = centred(50) / 100
    boards = rng.normal(size=(2000, 50)) @ centred(50) / 10
    spread = boards.max(axis=1) - boards.min(axis=1)
    # All differences have one standard error here, so the widest one decides.
    error = np.sqrt(2 / 100)
    ours = (spread > difference_max_t(Estimate(boards[0], covariance, 100), 0.95) * error).mean()
    assert ours <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / len(boards))
    assert ours >= 0.03
    # The rule of public arenas: rank = 1 + the number of models whose lower end exceeds one's upper end.
    reach = bands(Estimate(boards[0], covariance, 100), kind="marginal").critical * np.sqrt(0.98 / 100)
    assert (spread > 2 * reach).mean() > 0.5


def test_rank_intervals_of_equal_models_are_open() -> None:
    boards = np.random.default_rng(4).normal(size=(20, 50)) @ centred(50) / 10
    for value in boards:
        best, worst = rank_intervals(Estimate(value, centred(50) / 100, 100))
        assert (best <= 2).all()
        assert (worst >= 49).all()


def test_chance_of_being_best_of_two_is_the_normal_one() -> None:
    estimate = Estimate(np.array([0.3, 0.0]), np.diag([0.5, 0.5]), 100)
    expected = norm.cdf(0.3)
    np.testing.assert_allclose(probability_best(estimate), [expected, 1 - expected], atol=0.01)
    np.testing.assert_array_equal(probability_best(estimate, seed=7), probability_best(estimate, seed=7))


def test_what_moves_all_scores_alike_hides_no_difference() -> None:
    estimate = Estimate(np.array([0.5, 0.0, 0.1]), 25.0 * np.ones((3, 3)) + 0.01 * np.eye(3), 100)
    for kind in FIXED:
        assert surely_better(estimate, kind=kind)[0].tolist() == [False, True, True]
    assert (bands(estimate).lower < 0).all()


def test_contrasts_carry_their_own_error() -> None:
    rng = np.random.default_rng(4)
    estimate = random_estimate(rng, 4, 4)
    contrast = np.eye(4) - np.eye(4)[2]
    anchored = against(estimate, 2)
    np.testing.assert_allclose(anchored.value, contrast @ estimate.value)
    np.testing.assert_allclose(anchored.covariance, contrast @ estimate.covariance @ contrast.T, atol=1e-14)
    assert anchored.standard_error[2] == 0.0


def test_elo_keeps_ranks_and_scales_errors() -> None:
    estimate = Estimate(np.array([0.0, np.log(10.0)]), np.diag([1.0, 4.0]), 100)
    scaled = elo(estimate)
    np.testing.assert_allclose(scaled.value, [1000.0, 1400.0])
    np.testing.assert_allclose(scaled.standard_error, np.array([1.0, 2.0]) * 400 / np.log(10))


def test_open_neighbours_are_next_to_each_other_and_not_settled() -> None:
    value = np.array([0.0, 10.0, 0.1, 5.0])
    found = open_neighbours(Estimate(value, 0.01 * np.eye(4), 100))
    # 10 > 5 > .1 > 0: only the last two are within their error of each other.
    assert list(zip(*np.nonzero(found), strict=True)) == [(2, 0)]
    vague = open_neighbours(Estimate(value, 1e4 * np.eye(4), 100))
    assert list(zip(*np.nonzero(vague), strict=True)) == [(1, 3), (2, 0), (3, 2)]
