"""Response rates: answers in one go, answers that trickle in, pairs that differ, and few of anything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.stats.debias.response import CELL, LEAST, DrawnPairs, ResponseRates
from app.stats.errors import InvalidInput
from app.stats.types import Floats, Ints

HOUR = 3600.0


def draws(age: list[float], answered: list[bool]) -> DrawnPairs:
    """Draws of the pair (0, 1)."""
    zeros = np.zeros(len(age), dtype=np.int64)
    return DrawnPairs(zeros, zeros + 1, np.array(age, dtype=np.float64), np.array(answered, dtype=np.bool_))


def pooled(rates: ResponseRates, ages: list[float]) -> Floats:
    """The chance of an answer to (0, 1) at each age."""
    zeros = np.zeros(len(ages), dtype=np.int64)
    return rates.rate(zeros, zeros + 1, np.array(ages))


def test_draws_of_one_age_give_the_share_answered() -> None:
    rates = ResponseRates.of(draws([100.0] * 4, [True, True, False, False]), 2)
    assert pooled(rates, [99.0, 100.0, 1e6]).tolist() == pytest.approx([0, 0.5, 0.5])


def test_draws_that_are_all_answered_count_in_full_whenever_that_was() -> None:
    rates = ResponseRates.of(draws(np.linspace(0, HOUR, 600).tolist(), [True] * 600), 2)
    assert pooled(rates, [0.0, 1.0, HOUR]).tolist() == [1, 1, 1]


def test_draws_younger_than_any_answer_say_nothing() -> None:
    rates = ResponseRates.of(draws([1.0, 2.0, 3.0, 4.0, 5.0], [False, False, True, False, True]), 2)
    ages = [0.0, 2.0, 3.0, 5.0]
    assert pooled(rates, ages).tolist() == pytest.approx([0, 0, 2 / 3, 2 / 3])
    assert rates.too_young(np.array(ages)).tolist() == [True, True, False, False]


def test_without_a_draw_all_is_answered_and_without_an_answer_nothing() -> None:
    assert pooled(ResponseRates.of(draws([], []), 3), [0.0, 5.0]).tolist() == [1.0, 1.0]
    never = ResponseRates.of(draws([50.0], [False]), 3)
    assert pooled(never, [10.0, 60.0]).tolist() == [0.0, 0.0]
    assert never.too_young(np.array([10.0, 60.0])).all()


def test_a_lone_early_answer_does_not_stand_for_all_young_draws() -> None:
    """One of 200 fresh draws is answered, and nearly all of the old ones."""
    answered = [True, *[False] * 199, *[True] * 500]
    rates = ResponseRates.of(draws(np.linspace(0, HOUR, 700).tolist(), answered), 2)
    assert pooled(rates, [0.0])[0] > LEAST * 501 / 700
    assert pooled(rates, [HOUR])[0] == pytest.approx(1.0)


@given(st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=150))
def test_answers_over_their_rate_add_up_to_the_draws(both: list[tuple[int, bool]]) -> None:
    found = draws([float(age) for age, _ in both], [answered for _, answered in both])
    rates = ResponseRates.of(found, 2)
    rate = pooled(rates, found.age.tolist())
    assert (np.diff(rates.answered) > -1e-12).all()
    assert (rate[found.answered] > 0).all()
    counted = ~rates.too_young(found.age)
    if found.answered.any():
        assert (1 / rate[found.answered]).sum() == pytest.approx(counted.sum())
        assert rates.answered.min() >= LEAST * found.answered.sum() / counted.sum() - 1e-12
        assert rates.ages.size <= max(found.answered.sum() / CELL, 1)


@pytest.mark.parametrize("age", [-1.0, np.nan, np.inf])
def test_ages_before_the_draw_or_unknown_are_refused(age: float) -> None:
    with pytest.raises(InvalidInput):
        draws([age], [True])


def leases(n_draws: int, *, chance: Floats, seed: int) -> DrawnPairs:
    """Draws of the last four hours of four ordered pairs with these chances of ever being answered.

    Answers, where they ever come, take half an hour on average.
    """
    generator = np.random.default_rng(seed)
    pair = generator.integers(0, chance.size, n_draws)
    age = generator.uniform(0.0, 4.0 * HOUR, n_draws)
    ever = generator.random(n_draws) < chance[pair]
    return DrawnPairs(pair, (pair + 1) % 4, age, ever & (generator.exponential(0.5 * HOUR, n_draws) < age))


def test_rates_are_those_of_each_age() -> None:
    rates = ResponseRates.of(leases(20_000, chance=np.full(4, 0.7), seed=3), 4)
    ages = np.array([0.5, 1.0, 2.0, 3.5]) * HOUR
    truth = 0.7 * (1.0 - np.exp(-ages / (0.5 * HOUR)))
    # Each within four binomial errors of the draws of a quarter of an hour.
    np.testing.assert_allclose(pooled(rates, ages.tolist()), truth, atol=4 * 0.5 / np.sqrt(20_000 / 16))


def test_divided_by_pi_times_rate_the_answers_add_up_to_the_draws() -> None:
    drawn = leases(20_000, chance=np.array([0.3, 0.9, 0.7, 0.5]), seed=4)
    rates, heard = ResponseRates.of(drawn, 4), drawn.answered
    rate = rates.rate(drawn.left, drawn.right, drawn.age)
    for pair in range(4):
        own = (drawn.left == pair) & ~rates.too_young(drawn.age)
        total, expected = (1.0 / rate[own & heard]).sum(), own.sum()
        # Var of S/rate is 1/rate - 1 a draw.
        assert total == pytest.approx(expected, abs=4 * np.sqrt((1.0 / rate[own] - 1.0).clip(0, 20).sum()))


def test_pairs_that_differ_keep_their_own_rate() -> None:
    apart = np.array([0.2, 0.9, 0.6, 0.6])
    factors = ResponseRates.of(leases(2_000, chance=apart, seed=5), 4).pair[np.arange(4), (np.arange(4) + 1) % 4]
    # 500 draws each: four binomial errors of the answers, relative to the mean.
    np.testing.assert_allclose(factors, apart / apart.mean(), atol=4 * np.sqrt(0.4 / 0.6 / 500))


def test_pairs_that_differ_by_chance_lean_on_the_others() -> None:
    squared, cells = np.zeros(2), (np.arange(4), (np.arange(4) + 1) % 4)
    for seed in range(20):
        drawn = leases(200, chance=np.full(4, 0.6), seed=seed)
        rates = ResponseRates.of(drawn, 4)
        heard = np.bincount(drawn.left[drawn.answered], minlength=4)
        curve = np.concatenate([[0.0], rates.answered])[np.searchsorted(rates.ages, drawn.age, side="right")]
        own = heard / np.bincount(drawn.left, weights=curve, minlength=4)
        squared += [((rates.pair[cells] - 1.0) ** 2).sum(), ((own - 1.0) ** 2).sum()]
    assert squared[0] < squared[1] / 3


def test_pairs_that_are_answered_more_often_than_others_weigh_no_more_for_it() -> None:
    apart = np.array([0.3, 0.9, 0.6, 0.6])
    drawn = leases(4_000, chance=apart, seed=5)
    rates, heard = ResponseRates.of(drawn, 4), drawn.answered
    chance = rates.oldest(drawn.left[heard], drawn.right[heard])
    stand_for = np.bincount(drawn.left[heard], weights=1.0 / chance, minlength=4)
    stand_for /= np.bincount(drawn.left, minlength=4)
    np.testing.assert_allclose(stand_for / stand_for.mean(), 1.0, atol=0.08)
    assert (chance <= 1).all()


def test_without_an_answer_the_oldest_draws_say_nothing_of_pairs() -> None:
    never = ResponseRates.of(draws([50.0], [False]), 3)
    assert never.oldest(np.array([0]), np.array([1])).tolist() == [1.0]


def test_a_pair_without_draws_has_the_pooled_rate() -> None:
    rates = ResponseRates.of(leases(500, chance=np.array([0.2, 0.9, 0.6, 0.6]), seed=6), 5)
    unseen: tuple[Ints, Ints] = (np.array([4]), np.array([0]))
    assert rates.rate(*unseen, np.array([HOUR]))[0] == pytest.approx(
        rates.answered[np.searchsorted(rates.ages, HOUR, side="right") - 1]
    )
