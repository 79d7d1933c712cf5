"""Response rates: known answers, a slow twin, and draws whose leases are still open."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.stats.debias.response import DrawTimes, ResponseRates
from app.stats.errors import InvalidInput
from app.stats.types import Bools, Floats, Ints

HOUR = 3600.0


def times(drawn_for: list[float], answered_after: list[float]) -> DrawTimes:
    """Draws of the pair (0, 1)."""
    zeros = np.zeros(len(drawn_for), dtype=np.int64)
    return DrawTimes(zeros, zeros + 1, np.array(drawn_for), np.array(answered_after))


def pooled(rates: ResponseRates, ages: list[float]) -> Floats:
    """The chance of an answer to (0, 1) by each age."""
    zeros = np.zeros(len(ages), dtype=np.int64)
    return rates.rate(zeros, zeros + 1, np.array(ages))


def slow_curve(draws: DrawTimes, age: float) -> float:
    """The chance of an answer by an age, one draw after the other."""
    unanswered = 1.0
    both = list(zip(draws.drawn_for.tolist(), draws.answered_after.tolist(), strict=True))
    for moment in sorted({after for ago, after in both if after <= ago and after <= age}):
        at_risk = sum(min(ago, after) >= moment for ago, after in both)
        answers = sum(after == moment and after <= ago for ago, after in both)
        unanswered *= 1.0 - answers / at_risk
    return 1.0 - unanswered


def test_draws_of_one_age_give_the_share_answered() -> None:
    rates = ResponseRates.of(times([100.0] * 4, [10.0, 30.0, np.inf, np.inf]), 2)
    assert pooled(rates, [5.0, 10.0, 29.0, 30.0, 100.0, 1e6]).tolist() == pytest.approx([0, 0.25, 0.25, 0.5, 0.5, 0.5])


def test_an_open_draw_counts_until_now_and_no_longer() -> None:
    rates = ResponseRates.of(times([20.0, 100.0, 100.0], [np.inf, 50.0, np.inf]), 2)
    assert pooled(rates, [100.0])[0] == pytest.approx(0.5)


def test_an_answer_later_than_now_is_none_yet() -> None:
    late = ResponseRates.of(times([20.0, 100.0, 100.0], [60.0, 50.0, np.inf]), 2)
    assert pooled(late, [100.0])[0] == pytest.approx(0.5)


@given(st.lists(st.tuples(st.integers(1, 9), st.one_of(st.integers(1, 9), st.just(np.inf))), min_size=1, max_size=12))
def test_the_curve_is_that_of_its_slow_twin(both: list[tuple[int, float]]) -> None:
    draws = times([float(ago) for ago, _ in both], [float(after) for _, after in both])
    rates = ResponseRates.of(draws, 2)
    assert rates.times.tolist() == sorted({float(after) for ago, after in both if after <= ago})
    np.testing.assert_allclose(rates.answered, [slow_curve(draws, age) for age in rates.times.tolist()], atol=1e-12)


def test_without_a_draw_all_is_answered_and_without_an_answer_nothing() -> None:
    assert pooled(ResponseRates.of(times([], []), 3), [0.0, 5.0]).tolist() == [1.0, 1.0]
    assert pooled(ResponseRates.of(times([50.0], [np.inf]), 3), [10.0, 60.0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(("ago", "after"), [(-1.0, np.inf), (np.nan, 1.0), (5.0, -2.0), (5.0, np.nan), (np.inf, 1.0)])
def test_times_before_the_draw_or_unknown_are_refused(ago: float, after: float) -> None:
    with pytest.raises(InvalidInput):
        times([ago], [after])


def leases(n_draws: int, *, chance: Floats, seed: int) -> tuple[DrawTimes, Bools]:
    """Draws of the last four hours, leased for an hour; answers, where they ever come, take half an hour on average.

    Returns
    -------
    the draws of four ordered pairs with these chances of ever being answered, and which of them were skipped, on
    average after ten minutes.
    """
    generator = np.random.default_rng(seed)
    pair = generator.integers(0, chance.size, n_draws)
    drawn_for = generator.uniform(0.0, 4.0 * HOUR, n_draws)
    ever = generator.random(n_draws) < chance[pair]
    after = np.where(ever, generator.exponential(0.5 * HOUR, n_draws), np.inf)
    after[after > drawn_for] = np.inf
    skipped = ~ever & (generator.exponential(HOUR / 6, n_draws) < drawn_for)
    return DrawTimes(pair, (pair + 1) % 4, drawn_for, after), skipped


def test_rates_are_right_where_answered_among_answered_and_expired_is_not() -> None:
    draws, skipped = leases(20_000, chance=np.full(4, 0.7), seed=3)
    rates = ResponseRates.of(draws, 4)
    ages = np.array([0.5, 1.0, 2.0, 4.0]) * HOUR
    truth = 0.7 * (1.0 - np.exp(-ages / (0.5 * HOUR)))
    # Each within four binomial errors of the fewest draws that are as old: a quarter of them at three hours.
    np.testing.assert_allclose(pooled(rates, ages.tolist()), truth, atol=4 * 0.5 / np.sqrt(5_000))
    young = draws.drawn_for < 0.5 * HOUR
    answered = np.isfinite(draws.answered_after[young])
    expired = ~answered & (draws.drawn_for[young] > HOUR)
    assert answered.sum() / (answered.sum() + expired.sum()) == 1.0
    censored = DrawTimes(
        draws.left, draws.right, np.where(skipped, 1.0, draws.drawn_for), draws.answered_after
    )  # a skip that ends the watching looks like an answer still to come
    assert pooled(ResponseRates.of(censored, 4), [4.0 * HOUR])[0] > 0.9


def test_divided_by_pi_times_rate_the_answers_add_up_to_the_draws() -> None:
    draws, _ = leases(20_000, chance=np.array([0.3, 0.9, 0.7, 0.5]), seed=4)
    rates = ResponseRates.of(draws, 4)
    heard = np.isfinite(draws.answered_after)
    rate = rates.rate(draws.left, draws.right, draws.drawn_for)
    for pair in range(4):
        own = draws.left == pair
        total, expected = (1.0 / rate[own & heard]).sum(), own.sum()
        # Var of S/rate is 1/rate - 1 a draw.
        assert total == pytest.approx(expected, abs=4 * np.sqrt((1.0 / rate[own] - 1.0).clip(0, 20).sum()))


def test_pairs_that_differ_keep_their_own_rate() -> None:
    apart = np.array([0.2, 0.9, 0.6, 0.6])
    factors = ResponseRates.of(leases(2_000, chance=apart, seed=5)[0], 4).pair[np.arange(4), (np.arange(4) + 1) % 4]
    # 500 draws each: four binomial errors of the answers, relative to the mean.
    np.testing.assert_allclose(factors, apart / apart.mean(), atol=4 * np.sqrt(0.4 / 0.6 / 500))


def test_pairs_that_differ_by_chance_lean_on_the_others() -> None:
    squared, cells = np.zeros(2), (np.arange(4), (np.arange(4) + 1) % 4)
    for seed in range(20):
        draws, _ = leases(200, chance=np.full(4, 0.6), seed=seed)
        rates = ResponseRates.of(draws, 4)
        heard = np.bincount(draws.left[np.isfinite(draws.answered_after)], minlength=4)
        curve = np.concatenate([[0.0], rates.answered])[np.searchsorted(rates.times, draws.drawn_for, side="right")]
        own = heard / np.bincount(draws.left, weights=curve, minlength=4)
        squared += [((rates.pair[cells] - 1.0) ** 2).sum(), ((own - 1.0) ** 2).sum()]
    assert squared[0] < squared[1] / 3


def test_a_pair_without_draws_has_the_pooled_rate() -> None:
    rates = ResponseRates.of(leases(500, chance=np.array([0.2, 0.9, 0.6, 0.6]), seed=6)[0], 5)
    unseen: tuple[Ints, Ints] = (np.array([4]), np.array([0]))
    assert rates.rate(*unseen, np.array([HOUR]))[0] == pytest.approx(
        rates.answered[np.searchsorted(rates.times, HOUR, side="right") - 1]
    )
