"""Ordered partitions, aggregators and debiased payoffs: known answers, slow twins, orthogonality."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from app.stats.errors import InvalidInput
from app.stats.feedback import (
    Aggregator,
    Menus,
    MenuSample,
    MenuVotes,
    Tiers,
    all_menus,
    corrections,
    estimated_propensities,
    mean_payoffs,
    menus_of,
    partial,
    uniform,
    verdicts,
    winner,
)
from app.stats.inference import bands
from app.stats.simulate.electorate import Electorate, Feedback
from app.stats.types import Floats


def all_verdicts(tiers: Tiers) -> dict[tuple[int, int], float]:
    menu = np.flatnonzero(tiers >= 0)
    pairs = [(int(j), int(k)) for j in menu for k in menu if j < k]
    first, second = (np.array(each) for each in zip(*pairs, strict=True))
    return dict(zip(pairs, verdicts(tiers, first, second), strict=True))


def test_rankings_order_what_they_list_above_what_they_leave_out() -> None:
    said = all_verdicts(partial([0, 1, 3, 4], [[3], [0, 4]], 5))
    assert said == {(0, 1): 1, (0, 3): -1, (0, 4): 0, (1, 3): -1, (1, 4): -1, (3, 4): 1}


def test_winners_leave_losers_without_a_verdict() -> None:
    assert all_verdicts(winner([0, 1, 2], 1, 3)) == {(0, 1): -1, (0, 2): 0, (1, 2): 1}


@pytest.mark.parametrize("ranking", [[], [[0, 1]]])
def test_ties_and_both_bad_are_no_verdict(ranking: list[list[int]]) -> None:
    assert all_verdicts(partial([0, 1], ranking, 3)) == {(0, 1): 0}


@pytest.mark.parametrize(
    ("menu", "ranking", "word"),
    [
        ([0], [[0]], "two or more"),
        ([0, 0], [[0]], "each once"),
        ([0, 7], [[0]], "outside"),
        ([0, 1], [[0], []], "empty"),
        ([0, 1], [[0], [0]], "twice"),
        ([0, 1], [[0, 0]], "twice"),
        ([0, 1], [[2]], "not on its menu"),
    ],
)
def test_what_is_no_ordered_partition_is_refused(menu: list[int], ranking: list[list[int]], word: str) -> None:
    with pytest.raises(InvalidInput, match=word):
        partial(menu, ranking, 3)


def test_cells_are_the_pairs_of_each_menu() -> None:
    menus = Menus(np.array([[True, True, False], [True, True, True]]))
    menu, first, second = menus.cells
    assert list(zip(menu, first, second, strict=True)) == [(0, 0, 1), (1, 0, 1), (1, 0, 2), (1, 1, 2)]
    np.testing.assert_array_equal(menus.pair_of_cell, [0, 0, 1, 2])
    matrix = menus.matrix(np.array([[0.1, 0.2, -0.3]]))
    np.testing.assert_allclose(matrix, -matrix.transpose(0, 2, 1))
    np.testing.assert_allclose(menus.values(matrix), [[0.1, 0.2, -0.3]])
    assert len(all_menus(5, 3).members) == 10


def test_menus_are_found_in_votes() -> None:
    menus, menu = menus_of(np.stack([partial([1, 2], [[1]], 3), partial([0, 1, 2], [[1]], 3), partial([1, 2], [], 3)]))
    np.testing.assert_array_equal(menus.members[menu].sum(axis=1), [2, 3, 2])
    with pytest.raises(InvalidInput):
        Menus(np.array([[True, False]]))


@pytest.mark.parametrize("cubic", [False, True])
def test_aggregators_are_odd_idempotent_and_have_the_slope_they_say(*, cubic: bool) -> None:
    menus = all_menus(4, 3)
    f = Aggregator(menus, np.array([1.0, 2.0, 0.5, 0.0]), cubic=cubic)
    margins = np.random.default_rng(0).uniform(-1.0, 1.0, (20, menus.cells[0].size))
    np.testing.assert_allclose(f.payoffs(-margins), -f.payoffs(margins), atol=1e-15)
    same = np.full(margins.shape, 0.37)
    np.testing.assert_allclose(f.payoffs(same), 0.37)
    np.testing.assert_allclose(f.total_slopes(same), 1.0)
    step = 1e-6
    for cell in range(margins.shape[1]):
        moved = np.eye(margins.shape[1])[cell] * step
        change = (f.payoffs(margins + moved) - f.payoffs(margins - moved)) / (2 * step)
        pair = menus.pair_of_cell[cell]
        np.testing.assert_allclose(change[:, pair], f.slopes(margins)[:, cell], atol=1e-8)
        assert not np.delete(change, pair, axis=1).any()


def test_weights_that_leave_a_pair_without_menus_are_refused() -> None:
    with pytest.raises(InvalidInput):
        Aggregator(all_menus(3, 2), np.array([1.0, 0.0, 1.0]))
    with pytest.raises(InvalidInput):
        Aggregator(all_menus(3, 2), np.ones(2))


def board(feedback: Feedback, n: int, *, seed: int = 0) -> tuple[Electorate, Floats, MenuSample]:
    on = Electorate(3, feedback, seed)
    drawn = on.draw(n, seed=seed)
    rows = np.arange(n)
    return on, drawn.x, MenuSample(on.menus, drawn.votes, rows % 3, rows, rows)


@pytest.mark.parametrize("cubic", [False, True])
def test_pseudo_outcomes_are_the_sum_over_menus_that_the_definition_says(*, cubic: bool) -> None:
    _, _, sample = board("winners", 40)
    f = Aggregator(sample.menus, np.linspace(0.5, 1.5, 10), cubic=cubic)
    margins = np.random.default_rng(1).uniform(-0.9, 0.9, (40, sample.menus.cells[0].size))
    parts = corrections(sample, margins, f)
    expected, weight = f.payoffs(margins), np.zeros((40, 10))
    slopes = f.slopes(margins)
    for vote in range(len(sample.votes)):
        row, tiers = sample.votes.row[vote], sample.votes.tiers[vote]
        for cell, (menu, j, k) in enumerate(zip(*sample.menus.cells, strict=True)):
            if menu == sample.votes.menu[vote]:
                said = float(np.sign(tiers[k] - tiers[j]))
                share = slopes[row, cell] / sample.votes.propensity[vote]
                expected[row, sample.menus.pair_of_cell[cell]] += share * (said - margins[row, cell])
                weight[row, sample.menus.pair_of_cell[cell]] += share
    np.testing.assert_allclose(parts.pseudo_outcomes, expected)
    np.testing.assert_allclose(parts.weight, weight)
    np.testing.assert_allclose(parts.residuals * parts.weight, parts.excess, atol=1e-12)


@pytest.mark.parametrize("feedback", ["pairs", "rankings", "winners"])
def test_mean_payoffs_are_right_with_wrong_margins_and_their_intervals_hold_the_truth(feedback: Feedback) -> None:
    on, x, sample = board(feedback, 4000)
    truth = on.menus.values(on.payoffs(x)).mean(axis=0)
    parts = corrections(sample, np.full((4000, on.menus.cells[0].size), 0.3), uniform(on.menus))
    found = mean_payoffs(parts.pseudo_outcomes, sample.context)
    np.testing.assert_allclose(found.value, truth, atol=float(4.5 * found.standard_error.max()))
    band = bands(found, level=0.999)
    assert ((band.lower <= truth) & (truth <= band.upper)).all()
    assert np.abs(parts.start.mean(axis=0) - truth).max() > 0.2


def test_clusters_of_copied_rows_have_the_error_of_the_originals() -> None:
    values = np.random.default_rng(0).normal(size=(300, 4))
    alone = mean_payoffs(values, np.arange(300))
    copied = mean_payoffs(np.repeat(values, 3, axis=0), np.repeat(np.arange(300), 3))
    np.testing.assert_allclose(copied.covariance, alone.covariance)


def test_estimated_propensities_are_rates_of_menus() -> None:
    _, _, sample = board("pairs", 5000)
    used = estimated_propensities(sample)
    for menu in range(10):
        own = sample.votes.menu == menu
        assert used[own][0] == pytest.approx(own.sum() / 5000, rel=0.01)


@pytest.mark.parametrize("cubic", [False, True])
@pytest.mark.parametrize("feedback", ["pairs", "winners"])
def test_the_error_of_debiased_payoffs_is_of_second_order(feedback: Feedback, *, cubic: bool) -> None:
    on = Electorate(3, feedback, 1)
    x = on.covariates(np.random.default_rng(0).random((400, 5)))
    f = Aggregator(on.menus, np.ones(10), cubic=cubic)
    errors = [on.orthogonality(x, delta, f) for delta in (0.08, 0.04, 0.02)]
    debiased = [each[0] for each in errors]
    plug_in = [each[1] for each in errors]
    for larger, smaller in pairwise(debiased):
        assert larger / smaller >= 3.5
    for larger, smaller in pairwise(plug_in):
        assert larger / smaller == pytest.approx(2.0, abs=0.3)


def test_single_voters_are_transitive_and_many_are_not() -> None:
    shares = []
    for voters in (1, 3, 5):
        beaten = []
        for world in range(8):
            on = Electorate(voters, "rankings", world)
            payoffs = on.payoffs(on.covariates(np.random.default_rng(0).random((500, 5))))
            beaten.append(1.0 - ((payoffs > 0).sum(axis=2) == 4).any(axis=1).mean())
        shares.append(float(np.mean(beaten)))
    assert shares[0] == 0.0
    assert shares[1] == pytest.approx(0.59, abs=0.1)
    assert shares[2] == pytest.approx(0.73, abs=0.1)


@pytest.mark.parametrize("feedback", ["pairs", "rankings", "winners"])
def test_draws_follow_the_exact_margins_and_propensities(feedback: Feedback) -> None:
    on = Electorate(3, feedback, 2)
    drawn = on.draw(6000, seed=4)
    votes, (menu, first, second) = drawn.votes, on.menus.cells
    exact = on.margins(drawn.x)
    chance = on.propensities(drawn.x)
    for cell in (0, 7):
        own = votes.menu == menu[cell]
        said = verdicts(votes.tiers[own], first[[cell]], second[[cell]])[:, 0]
        off = said - exact[votes.row[own], cell]
        assert abs(off.mean()) < 4.5 * off.std() / np.sqrt(own.sum()) + 1e-12
        shown = own.sum() - chance[:, menu[cell]].sum()
        assert abs(shown) < 4.5 * np.sqrt(chance[:, menu[cell]].sum())
    assert isinstance(votes, MenuVotes)
    np.testing.assert_array_equal(on.draw(50, seed=4).x, on.draw(50, seed=4).x)
