"""The synthetic boards: their mu, policy and draws agree with each other; the known truth is the truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.stats.gars import BUILT_IN, Borda, Graph, estimand
from app.stats.simulate import Arena, Cyclic, Draws, Generator, Scored, Shown, Strength, sobol_covariates, truth
from app.stats.types import Floats

BOARDS: tuple[Generator, ...] = (
    Cyclic(),
    Cyclic(n_items=8, n_covariates=3, world=4),
    Arena(n_items=6),
    Arena(taste=0.0),
    Cyclic(outcomes="binary", strength=Strength(cycle=0.0)),
    Arena(n_items=5, taste=0.0, strength=Strength(pairs=0.8)),
)


def oracle_rows(board: Generator, draws: Draws, name: str) -> Floats:
    """The one-step estimator's rows with the true nuisances."""
    graph, votes, chosen = Graph.complete(board.n_items), draws.votes, estimand(name)
    mu = board.probabilities(draws.x)
    p = board.rule.scores(mu)
    seen = mu[votes.row, votes.left, votes.right]
    surprise = np.eye(seen.shape[1])[votes.outcome] - seen
    credit = (board.rule.gradient(seen) * surprise).sum(axis=1) / votes.propensity
    rows = chosen.value(p, graph)
    np.add.at(rows, votes.row, credit[:, None] * chosen.gradient_at(p, votes.row, votes.left, votes.right, graph))
    return rows


@pytest.mark.parametrize("board", BOARDS)
def test_dense_and_single_probabilities_agree(board: Generator) -> None:
    x = sobol_covariates(board, power=4)
    mu = board.probabilities(x)
    left, right = np.arange(16) % board.n_items, (np.arange(16) + 2) % board.n_items
    np.testing.assert_allclose(board.probabilities_at(x, left, right), mu[np.arange(16), left, right], atol=1e-12)
    np.testing.assert_allclose(mu.sum(axis=3), 1.0, atol=1e-12)
    assert mu.min() > 0


@pytest.mark.parametrize("board", BOARDS)
def test_draws_follow_the_policy_and_the_outcome_model(board: Generator) -> None:
    draws = board.draw(20_000, seed=1)
    votes, policy = draws.votes, board.propensities(draws.x)
    np.testing.assert_allclose(votes.propensity, policy[votes.row, votes.left, votes.right])
    assert (votes.left != votes.right).all()
    seen = np.zeros(policy.shape[1:])
    np.add.at(seen, (votes.left, votes.right), 1.0)
    off = ~np.eye(board.n_items, dtype=bool)
    deviation = (seen - policy.sum(axis=0))[off] / np.sqrt(policy.sum(axis=0)[off])
    assert np.abs(deviation).max() < 4.5
    mu = board.probabilities_at(draws.x[votes.row], votes.left, votes.right)
    surplus = np.bincount(votes.outcome, minlength=mu.shape[1]) - mu.sum(axis=0)
    # Voters' tastes make the outcomes of one voter alike, so their counts vary more than independent ones.
    assert np.abs(surplus / np.sqrt(mu.sum(axis=0))).max() < 6


@pytest.mark.parametrize("board", [Cyclic(), replace(Arena(n_items=6), taste=0.0)])
@pytest.mark.parametrize("name", ["borda", "bt", "rc"])
def test_the_truth_is_what_the_oracle_estimates(board: Generator, name: str) -> None:
    rows = oracle_rows(board, board.draw(20_000, seed=2), name)
    known = truth(board, estimand(name), Graph.complete(board.n_items))
    error = rows.std(axis=0) / np.sqrt(len(rows))
    assert np.abs((rows.mean(axis=0) - known) / error).max() < 4


def test_the_oracle_covers_at_the_nominal_rate() -> None:
    board = Cyclic()
    known = truth(board, Borda(), Graph.complete(5))
    hits = []
    for seed in range(200):
        rows = oracle_rows(board, board.draw(400, seed=seed), "borda")
        hits.append(np.abs(rows.mean(axis=0) - known) < 1.96 * rows.std(axis=0) / np.sqrt(400))
    assert abs(np.mean(hits) - 0.95) < 3 * np.sqrt(0.05 * 0.95 / 200)


def test_voters_average_to_the_exact_mu() -> None:
    board = Arena(n_items=4, n_voters=1)
    x = np.repeat(sobol_covariates(board, power=1)[:1], 40_000, axis=0)
    gap = np.random.default_rng(3).normal(0.0, np.sqrt(2) * board.taste, 40_000)
    pair = np.zeros(40_000, dtype=int), np.ones(40_000, dtype=int)
    drawn = board.preferences.outcomes(x, board.preferences.margins_at(x, *pair) + gap)
    error = drawn.std(axis=0) / np.sqrt(40_000)
    assert (np.abs(drawn.mean(axis=0) - board.probabilities(x[:1])[0, 0, 1]) < 4 * error).all()


def test_voters_of_an_arena_differ_in_activity_and_taste() -> None:
    votes = Arena(n_items=4).draw(20_000, seed=5).votes
    activity = np.sort(np.bincount(votes.voter, minlength=200))
    assert activity[-20:].sum() > 3 * 0.1 * 20_000 * 0.9
    against_first = (votes.left == 0) & (votes.outcome < 2)
    wins = np.bincount(votes.voter[against_first], weights=votes.outcome[against_first] == 0, minlength=200)
    total = np.bincount(votes.voter[against_first], minlength=200)
    rate = wins.sum() / total.sum()
    busy = total > 30
    spread = (wins[busy] - rate * total[busy]) / np.sqrt(total[busy] * rate * (1 - rate))
    assert spread.std() > 1.5


@pytest.mark.parametrize("board", [Cyclic(), Arena()])
def test_equal_seeds_give_equal_boards(board: Generator) -> None:
    first, again, other = (board.draw(300, seed=seed) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first.x, again.x)
    np.testing.assert_array_equal(first.votes.outcome, again.votes.outcome)
    assert not np.array_equal(first.x, other.x)


def test_cyclic_preferences_are_not_transitive() -> None:
    board = Cyclic(strength=Strength(cycle=2.0))
    shares = Graph.complete(5).shares(board.rule.scores(board.probabilities(sobol_covariates(board, power=8))))
    assert ((shares > 0.5).sum(axis=2).max(axis=1) < 4).mean() > 0.5


def test_propensities_keep_their_bounds_and_move_with_the_context() -> None:
    board = Cyclic()
    policy = board.propensities(sobol_covariates(board, power=8))
    off = policy[:, ~np.eye(5, dtype=bool)]
    assert board.low <= off.min() < 0.1
    assert 0.3 < off.max() <= board.high
    assert 2.0 < off.sum(axis=1).mean() < 3.5
    np.testing.assert_allclose(Arena().propensities(sobol_covariates(Arena(), power=3)).sum(axis=(1, 2)), 1.0)


def test_more_points_leave_the_truth_where_it_is() -> None:
    board, graph = Cyclic(), Graph.complete(5)
    for chosen in BUILT_IN:
        coarse, fine = truth(board, chosen, graph, power=12), truth(board, chosen, graph)
        np.testing.assert_allclose(coarse, fine, atol=2e-3)
        assert not np.array_equal(coarse, fine)


def test_a_board_without_pair_terms_is_additive_and_one_with_them_is_not() -> None:
    additive, twisted = (Cyclic(outcomes="binary", strength=Strength(cycle=0.0, pairs=size)) for size in (0.0, 1.0))
    x = sobol_covariates(additive, power=4)
    np.testing.assert_allclose(*(board.preferences.utilities(x) for board in (additive, twisted)))
    triangle = [(0, 1), (1, 2), (2, 0)]
    for board, flat in ((additive, True), (twisted, False)):
        margins = board.preferences.margins(x) - board.preferences.position
        np.testing.assert_allclose(margins, -margins.transpose(0, 2, 1), atol=1e-12)
        assert (np.abs(sum(margins[:, j, k] for j, k in triangle)) < 1e-9).all() == flat


def test_a_restricted_board_shows_only_what_it_may_and_says_with_which_chance() -> None:
    board = Arena(n_items=5, taste=0.0)
    allowed = np.ones((2, 5, 5), dtype=bool) & ~np.eye(5, dtype=bool)
    allowed[0, 4] = allowed[0, :, 4] = False
    shown = Shown(allowed, np.repeat([0, 1], 5000))
    draws = board.draw_among(shown, seed=3)
    votes = draws.votes
    assert allowed[shown.period, votes.left, votes.right].all()
    policy = board.propensities(draws.x) * allowed[shown.period]
    policy /= policy.sum(axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(votes.propensity, policy[votes.row, votes.left, votes.right])
    assert ((votes.left == 4) | (votes.right == 4))[5000:].mean() > 0.2


def test_scores_become_outcomes_and_the_truth_is_that_of_the_table() -> None:
    scores = np.array([[1.0, 0.0, 0.5], [0.0, 0.0, 1.0], [1.0, 1.0, 1.0], [0.2, 0.0, 0.0]])
    board = Scored(scores, np.array([0, 0, 0, 1]))
    assert board.outcomes[:, 0, 1].tolist() == [0, 3, 2, 0]
    assert board.outcomes[:, 1, 2].tolist() == [1, 1, 2, 3]
    np.testing.assert_allclose(board.group_policy.sum(axis=(1, 2)), 1.0)
    # Item 0 against 1: 1, ½, ½, 1; against 2: 1, 0, ½, 1; averaged over both rivals and the four questions.
    known = board.truth(Borda(), Graph.complete(3))
    assert known[0] == pytest.approx((0.75 + 0.625) / 2)
    assert known.sum() == pytest.approx(1.5)


def test_votes_on_scores_follow_policy_and_table() -> None:
    rng = np.random.default_rng(5)
    board = Scored(rng.integers(0, 3, (60, 4)) / 2.0, rng.integers(0, 3, 60))
    draws = board.draw(30_000, seed=6)
    votes, question = draws.votes, board.questions(30_000, seed=6)
    np.testing.assert_array_equal(votes.outcome, board.outcomes[question, votes.left, votes.right])
    group = draws.x.argmax(axis=1)
    np.testing.assert_array_equal(group, board.group[question])
    np.testing.assert_allclose(votes.propensity, board.group_policy[group, votes.left, votes.right])
    seen = np.zeros((3, 4, 4))
    np.add.at(seen, (group, votes.left, votes.right), 1.0)
    expected = board.group_policy * np.bincount(group)[:, None, None]
    off = expected > 0
    assert (np.abs(seen - expected)[off] / np.sqrt(expected[off])).max() < 4.5
