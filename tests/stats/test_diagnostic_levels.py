"""Tests that hold their level where nothing is wrong, and see what is: on boards whose chances are known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from app.stats.debias import Clustering, support_of
from app.stats.diagnostics import calibrate, decisive, drift_of_items, judge_voters, pair_means, skew_test
from app.stats.types import Floats, Ints
from tests.stats.plain_boards import TERNARY, PlainBoard, margins_of, plain_board

SCORES = np.linspace(0.8, -0.8, 6)


def most(runs: int, level: float) -> int:
    """Rejections that a test of this level exceeds with a chance of 1 in 1,000."""
    return int(binom.ppf(0.999, runs, level))


def skew_p(board: PlainBoard, *, by_voter: bool = False) -> float:
    rule = decisive(TERNARY)
    assert rule is not None
    means = pair_means(board.sample, board.mu, [rule])[0]
    clustering = Clustering("voter" if by_voter else "context")
    test = skew_test(board.sample, means, support_of(board.sample).observed, clustering=clustering)
    assert test is not None
    return test.p_value


@pytest.mark.parametrize("votes", [300, 3_000])
def test_skew_holds_its_level_where_scores_carry_the_pairs(votes: int) -> None:
    runs = 150
    p = [skew_p(plain_board(np.random.default_rng([1, s]), margins_of(SCORES, first=0.3), votes)) for s in range(runs)]
    assert sum(each < 0.05 for each in p) <= most(runs, 0.05)
    assert 0.4 < np.mean(p) < 0.6


def test_skew_with_tastes_is_noise_once_votes_are_clustered_by_voter() -> None:
    def board(seed: int) -> PlainBoard:
        return plain_board(np.random.default_rng([2, seed]), margins_of(np.zeros(5)), 2_000, n_voters=40, taste=1.0)

    runs = 60
    boards = [board(seed) for seed in range(runs)]
    assert sum(skew_p(each, by_voter=True) < 0.05 for each in boards) <= most(runs, 0.05)


def test_circles_are_seen() -> None:
    boards = [plain_board(np.random.default_rng([3, s]), margins_of(SCORES, cycle=0.5), 3_000) for s in range(20)]
    assert sum(skew_p(board) < 0.05 for board in boards) >= 18


def test_calibration_holds_its_level_and_sees_overconfidence() -> None:
    runs, p_value, wrong = 200, [], []
    for seed in range(runs):
        rng = np.random.default_rng([4, seed])
        truth = rng.beta(2.0, 3.0, 1_000)
        happened = rng.random(1_000) < truth
        p_value.append(calibrate(truth, happened).p_value or 0.0)
        wrong.append(calibrate(np.clip(0.5 + 1.6 * (truth - 0.5), 0.01, 0.99), happened).p_value or 0.0)
    assert sum(each < 0.05 for each in p_value) <= most(runs, 0.05)
    assert 0.4 < np.mean(p_value) < 0.6
    assert np.mean(np.array(wrong) < 0.05) > 0.9


def spoiled(outcome: Ints, rng: np.random.Generator, how: str) -> Ints:
    match how:
        case "random":
            return rng.integers(0, 3, outcome.size)
        case "left":
            return np.zeros_like(outcome)
        case _:
            return np.array([1, 0, 2])[outcome]


@pytest.mark.parametrize("taste", [0.0, 0.7])
def test_honest_voters_of_any_taste_are_left_alone(taste: float) -> None:
    runs, alarms = 300, 0
    for seed in range(runs):
        board = plain_board(np.random.default_rng([5, seed]), margins_of(SCORES), 6_000, n_voters=100, taste=taste)
        found = judge_voters(board.sample.votes, board.of_votes, TERNARY)
        assert found is not None
        alarms += bool(found.flagged.any())
        assert np.median(found.agreement.z) == pytest.approx(0.0, abs=0.05)
    # All discoveries are false ones here: their share is one or zero, and one with chance 5% at most.
    assert alarms <= most(runs, 0.05)


def test_dishonest_voters_stand_out_and_few_others_with_them() -> None:
    caught: dict[str, list[bool]] = {"random": [], "left": [], "inverted": []}
    false_share: list[float] = []
    for seed in range(30):
        rng = np.random.default_rng([6, seed])
        board = plain_board(rng, margins_of(2 * SCORES), 16_000, n_voters=100, taste=0.5)
        votes = board.sample.votes
        for bad, how in enumerate([*caught] * 3):
            own = votes.voter == bad
            votes.outcome[own] = spoiled(votes.outcome[own], rng, how)
        found = judge_voters(votes, board.of_votes, TERNARY)
        assert found is not None
        for bad, how in enumerate([*caught] * 3):
            caught[how].append(bool(found.flagged[bad]))
        false_share.append(found.flagged[9:].sum() / max(found.flagged.sum(), 1))
    power = {how: np.mean(each) for how, each in caught.items()}
    assert power["random"] > 0.8
    assert min(power["left"], power["inverted"]) > 0.97
    assert np.mean(false_share) < 0.05 + 2 * np.std(false_share) / np.sqrt(30)


def drift_p(board: PlainBoard) -> Floats:
    later = np.arange(len(board.sample.votes)) >= len(board.sample.votes) // 2
    expected = TERNARY.scores(board.of_votes)
    return drift_of_items(board.sample, expected, later, clustering=Clustering()).p_value


def test_drift_holds_its_level_over_all_items() -> None:
    runs = 200
    p = [drift_p(plain_board(np.random.default_rng([7, s]), margins_of(SCORES), 1_500)).min() for s in range(runs)]
    assert sum(each < 0.05 for each in p) <= most(runs, 0.05)


def test_an_item_that_got_better_is_found() -> None:
    for seed in range(10):
        rng = np.random.default_rng([8, seed])
        before, after = (plain_board(rng, margins_of(SCORES + d), 3_000) for d in (0.0, np.eye(6)[2] * 0.8))
        before.sample.votes.outcome[1_500:] = after.sample.votes.outcome[1_500:]
        before.sample.votes.left[1_500:] = after.sample.votes.left[1_500:]
        before.sample.votes.right[1_500:] = after.sample.votes.right[1_500:]
        p = drift_p(before)
        assert p.argmin() == 2
        assert p[2] < 0.01
