"""Diagnostics: known answers, slow twins, and equality with what the rankings themselves compute."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit

from app.stats.debias import Clustering, Target, one_step
from app.stats.diagnostics import (
    calibrate,
    classical_chances,
    count_triples,
    decisive,
    discoveries,
    first_advantage,
    heaviest,
    judge_voters,
    kendall,
    left_share,
    log_losses,
    overlap_of_items,
    overlap_of_pairs,
    pair_means,
    rank_changes,
    share_chances,
    skew_test,
    strongest_cycles,
    taste_variance,
)
from app.stats.gars import Borda, BradleyTerry, Graph
from app.stats.types import Floats, Rule, Sample, Votes
from tests.stats.debias_samples import TERNARY, random_case
from tests.stats.plain_boards import margins_of, plain_board


def sample_of(left: list[int], right: list[int], outcome: list[int], **more: list[float]) -> Sample:
    """Votes on three items, each a row of its own in one of two folds."""
    size = len(left)
    row, ones = np.arange(size), np.ones(size)
    weight, pi = np.array(more.get("weight", ones)), np.array(more.get("propensity", ones))
    votes = Votes(row, np.array(left), np.array(right), np.array(outcome), weight, row, pi)
    return Sample(3, TERNARY, votes, row, row % 2, np.zeros(size, dtype=np.int64))


@pytest.mark.parametrize("rule", [TERNARY, Rule(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))])
def test_scores_from_pair_means_are_those_of_the_one_step(rule: Rule) -> None:
    case = random_case(np.random.default_rng(1), n_items=5, n_rows=60)
    graph = Graph.complete(5)
    sample = replace(case.sample, rule=rule)
    targets = {"borda": Target(Borda(), graph), "bt": Target(BradleyTerry(), graph)}
    expected = one_step(sample, case.mu, targets, clustering=Clustering())
    means = pair_means(case.sample, case.mu, [TERNARY, rule])[1]
    np.testing.assert_allclose(means.borda(graph), expected["borda"].estimate.value, atol=1e-12)
    np.testing.assert_allclose(means.bradley_terry(graph), expected["bt"].estimate.value, atol=1e-11)


def test_the_variance_of_a_vote_is_that_over_its_outcomes() -> None:
    case = random_case(np.random.default_rng(2), n_items=3, n_rows=10)
    steps, chances = [], []
    for outcome in range(3):
        votes = replace(case.sample.votes, outcome=np.full(len(case.sample.votes), outcome))
        means = pair_means(replace(case.sample, votes=votes), case.mu, [TERNARY])[0]
        fold, pattern = case.sample.fold[votes.row], case.sample.pattern[votes.row]
        steps.append(means.odds_step)
        chances.append(case.table[fold, pattern, votes.left, votes.right, outcome])
    expected = (np.array(chances) * np.array(steps) ** 2).sum(axis=0)
    np.testing.assert_allclose(means.odds_variance, expected, rtol=1e-10)


def test_overlap_of_a_handful_of_votes() -> None:
    sample = sample_of([0, 1, 0], [1, 0, 2], [0, 0, 1], propensity=[0.5, 0.25, 1.0])
    items, pairs = overlap_of_items(sample), overlap_of_pairs(sample)
    assert items.votes.tolist() == [3, 2, 1]
    assert items.effective == pytest.approx([49 / 21, 36 / 20, 1.0])
    assert pairs.votes.tolist() == [2, 1, 0]
    assert pairs.effective == pytest.approx([36 / 20, 1.0, 0.0])
    assert pairs.smallest_propensity[:2].tolist() == [0.25, 1.0]
    assert np.isnan(pairs.smallest_propensity[2])
    assert pairs.largest_weight.tolist() == [4.0, 1.0, 0.0]
    assert heaviest(sample.votes, 2).tolist() == [1, 0]
    assert heaviest(sample.votes, 9).tolist() == [1, 0, 2]


def test_calibration_of_two_predictions() -> None:
    predicted = np.repeat([0.2, 0.6], 50)
    happened = np.concatenate([np.arange(50) < 20, np.arange(50) < 30])
    found = calibrate(predicted, happened)
    assert found.observed == pytest.approx([0.4, 0.6])
    assert found.count.tolist() == [50, 50]
    assert found.standard_error == pytest.approx([np.sqrt(0.16 / 50), np.sqrt(0.24 / 50)])
    assert found.chi_square == pytest.approx(100 / 8)
    assert found.degrees == 2
    assert found.expected_error == pytest.approx(0.1)


def test_bins_too_small_for_a_test_leave_none() -> None:
    found = calibrate(np.full(20, 0.01), np.zeros(20, dtype=np.bool_))
    assert (found.chi_square, found.p_value, found.degrees) == (None, None, 0)


def test_rivals_predict_from_the_other_folds_alone() -> None:
    sample = sample_of([0, 1, 0, 1, 0, 1], [1, 0, 1, 0, 1, 0], [0, 0, 1, 2, 0, 1])
    even = np.array([1, 1, 1]) + 0.5
    odd = np.array([2, 1, 0]) + 0.5
    assert share_chances(sample)[0] == pytest.approx(even / even.sum())
    assert share_chances(sample)[1] == pytest.approx(odd / odd.sum())
    # In the even fold item 0 was shown first thrice and won twice: its odds are 2.
    given = classical_chances(sample)[1]
    assert given[2] == pytest.approx(odd[2] / odd.sum())
    assert given[1] / given[0] == pytest.approx(2.0)
    assert classical_chances(sample).sum(axis=1) == pytest.approx(np.ones(6))
    assert log_losses(given[None], sample.votes.take(np.array([1]))) == pytest.approx([-np.log(given[0])])


def test_classical_rival_falls_back_to_shares_where_scores_are_not_determined() -> None:
    sample = sample_of([0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0])
    np.testing.assert_array_equal(classical_chances(sample), share_chances(sample))


@pytest.mark.parametrize("seed", range(3))
def test_triples_are_counted_as_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = 7
    share, error = np.full((size, size), np.nan), np.full((size, size), np.nan)
    for j, k in combinations(range(size), 2):
        if rng.random() < 0.85:
            share[j, k] = rng.random()
            error[j, k] = error[k, j] = 0.05
            share[k, j] = 1 - share[j, k]
    found = count_triples(share, error)
    triples = [
        t for t in combinations(range(size), 3) if np.isfinite([share[a, b] for a, b in combinations(t, 2)]).all()
    ]
    lead = share - 0.5
    around = [
        t
        for t in triples
        if (np.sign([lead[t[0], t[1]], lead[t[1], t[2]], lead[t[2], t[0]]]) == np.sign(lead[t[0], t[1]])).all()
    ]
    certain = [t for t in around if min(abs(lead[a, b]) for a, b in combinations(t, 2)) > found.critical * 0.05]
    assert (found.seen, found.cyclic, found.certain) == (len(triples), len(around), len(certain))
    assert found.cyclic > 0
    cycles = strongest_cycles(share, error, 100)
    assert {tuple(sorted(cycle)) for cycle in cycles} == set(around)
    assert all(lead[a, b] > 0 and lead[b, c] > 0 and lead[c, a] > 0 for a, b, c in cycles)
    assert strongest_cycles(share, error, 1) == cycles[:1]


def test_decisive_votes_favour_somebody() -> None:
    rule = decisive(Rule(np.array([1.0, 0.7, 0.5, 0.0]), np.array([0.0, 0.3, 0.5, 1.0])))
    assert rule is not None
    assert (rule.first.tolist(), rule.second.tolist()) == ([1, 1, 0, 0], [0, 0, 0, 1])
    assert decisive(Rule(np.array([1.0, 0.5]), np.array([0.0, 0.5]))) is None


def test_pairs_without_a_circle_have_no_skew_to_test() -> None:
    board = plain_board(np.random.default_rng(3), margins_of(np.zeros(3)), 200)
    votes = board.sample.votes
    sample = replace(board.sample, votes=votes.take((votes.left != 2) | (votes.right != 0)))
    sample = replace(sample, votes=sample.votes.take((sample.votes.left != 0) | (sample.votes.right != 2)))
    rule = decisive(TERNARY)
    assert rule is not None
    order = np.array([[0, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0]])
    graph = Graph(order, np.ones(3, dtype=np.bool_))
    means = pair_means(sample, board.mu, [rule])[0]
    assert skew_test(sample, means, graph, clustering=Clustering()) is None


def slow_advantage(sample: Sample, shares: Floats, weights: Floats) -> Floats:
    """psi (n,) row by row, p the same for every row and q of the ternary rule."""
    value = np.full(sample.n_rows, (weights * (shares + shares.T - 1)).sum() / 2)
    votes = sample.votes
    for v in range(len(votes)):
        j, k = votes.left[v], votes.right[v]
        credit = TERNARY.first[votes.outcome[v]]
        value[votes.row[v]] += weights[j, k] / votes.propensity[v] * (credit - shares[j, k])
    return value


def test_advantage_of_the_first_side_is_a_mean_of_rows() -> None:
    board = plain_board(np.random.default_rng(4), margins_of(np.array([0.5, 0.0, -0.5]), first=0.6), 500)
    shares = TERNARY.scores(board.chances)
    weights = (1 - np.eye(3)) / 3
    rows = slow_advantage(board.sample, shares, weights)
    found = first_advantage(board.sample, board.mu, clustering=Clustering())
    assert found is not None
    assert found.size == 3
    assert found.value == pytest.approx(rows.mean())
    assert found.standard_error == pytest.approx(rows.std() / np.sqrt(500))
    truth = (weights * (shares + shares.T - 1)).sum() / 2
    assert abs(found.value - truth) < 4 * found.standard_error


def test_no_advantage_can_be_told_where_sides_are_fixed() -> None:
    sample = sample_of([0, 0, 1], [1, 2, 2], [0, 1, 2])
    board = plain_board(np.random.default_rng(5), margins_of(np.zeros(3)), 3)
    assert first_advantage(sample, board.mu, clustering=Clustering()) is None


def test_left_share_counts_decisive_votes() -> None:
    found = left_share(sample_of([0, 1, 0, 0], [1, 0, 2, 1], [0, 0, 1, 2]), clustering=Clustering())
    assert found is not None
    assert found.size == 3
    assert found.value == pytest.approx(2 / 3)
    assert found.standard_error == pytest.approx(np.sqrt(2 / 3 * 1 / 3 / 3))
    assert left_share(sample_of([0], [1], [2]), clustering=Clustering()) is None


def test_discoveries_step_up() -> None:
    p_value = np.array([0.30, 0.011, 0.04, 0.012, 0.9])
    assert discoveries(p_value, 0.05).tolist() == [False, True, False, True, False]
    assert not discoveries(np.array([0.06, 0.5]), 0.05).any()


def test_taste_is_the_spread_that_chance_leaves_over() -> None:
    rng = np.random.default_rng(6)
    noise, scale = np.full(40_000, 9.0), np.full(40_000, 10.0)
    statistic = rng.normal(0.0, np.sqrt(9.0 + 0.25 * 100.0), 40_000)
    assert taste_variance(statistic, noise, scale) == pytest.approx(0.25, rel=0.05)
    assert taste_variance(statistic / 10, noise, scale) == 0.0


def test_agreement_and_side_of_three_voters() -> None:
    margins = margins_of(np.array([2.0, 0.0, -2.0]))
    board = plain_board(np.random.default_rng(7), margins, 3_000, n_voters=3)
    votes = board.sample.votes
    turned = np.where(votes.voter == 1, np.array([1, 0, 2])[votes.outcome], votes.outcome)
    turned = np.where(votes.voter == 2, 0, turned)
    found = judge_voters(replace(votes, outcome=turned), board.of_votes, TERNARY)
    assert found is not None
    assert found.agreement.value == pytest.approx([1.0, -1.0, 0.0], abs=0.15)
    assert found.side.value == pytest.approx([0.0, 0.0, 1.0], abs=0.1)
    assert judge_voters(votes.take(np.arange(30)), board.of_votes[:30], TERNARY) is None


def test_a_lone_voter_is_the_median_voter() -> None:
    for seed in range(20):
        board = plain_board(np.random.default_rng(seed), margins_of(np.array([1.0, 0.0]), first=0.5), 40)
        votes = board.sample.votes
        found = judge_voters(replace(votes, voter=np.zeros_like(votes.voter)), board.of_votes, TERNARY)
        assert found is not None
        assert (found.agreement.z.tolist(), found.side.z.tolist()) == ([0.0], [0.0])


def test_rank_changes_and_kendall() -> None:
    before, after = np.array([3.0, 2.0, 1.0]), np.array([1.0, 2.0, 3.0])
    assert rank_changes(before, after).tolist() == [2, 0, -2]
    assert kendall(before, after) == pytest.approx(-1.0)
    assert kendall(before, np.zeros(3)) is None


def test_margins_of_the_plain_board_are_log_odds() -> None:
    board = plain_board(np.random.default_rng(8), margins_of(np.array([1.0, 0.0]), first=0.5), 1)
    rule = decisive(TERNARY)
    assert rule is not None
    assert rule.scores(board.chances)[0, 1] == pytest.approx(expit(1.5))
