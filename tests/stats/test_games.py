"""Equilibria: certificates, known games, slow twins, costs and budgets."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.stats.errors import InvalidInput
from app.stats.games import (
    SOFTNESS,
    Budget,
    Terms,
    borda_scores,
    bradley_terry_game,
    bradley_terry_scores,
    equilibria,
    exploitability,
    frontier,
    gap,
    head_to_head,
    programmed,
    project,
    robust_lottery,
    sole_winner,
    support_f1,
    total_variation,
    win_rate,
    winners,
)
from app.stats.types import Floats

STRENGTHS = (1e-3, 1e-2, 0.05, 1.0)
ROCK_PAPER_SCISSORS = np.array([[[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]]])


def random_games(seed: int, count: int, size: int) -> Floats:
    upper = np.triu(np.random.default_rng(seed).uniform(-1.0, 1.0, (count, size, size)), 1)
    return upper - upper.transpose(0, 2, 1)


def enumerated(payoffs: Floats, strength: float) -> Floats:
    """The equilibrium by trying every support (NashEval, Appendix B.6)."""
    size = len(payoffs)
    for support in (list(each) for count in range(1, size + 1) for each in combinations(range(size), count)):
        system = np.zeros((len(support) + 1, len(support) + 1))
        system[:-1, :-1] = strength * np.eye(len(support)) - payoffs[np.ix_(support, support)]
        system[:-1, -1] = system[-1, :-1] = 1.0
        shares = np.linalg.solve(system, np.append(np.zeros(len(support)), 1.0))
        lottery = np.zeros(size)
        lottery[support] = shares[:-1]
        slack = strength * lottery - payoffs @ lottery + shares[-1]
        if shares[:-1].min() >= 0 and slack.min() >= -1e-12:
            return lottery
    raise AssertionError


@pytest.mark.parametrize("size", [2, 3, 5, 10, 20, 50, 100])
def test_gaps_are_within_the_tolerance_for_all_strengths_with_and_without_costs(size: int) -> None:
    games = random_games(size, max(1000 // size, 20), size)
    costs = np.random.default_rng([size, 1]).uniform(0.0, 0.5, size)
    for terms in (Terms(strength, costs=paid) for strength in STRENGTHS for paid in (np.zeros(0), costs)):
        found = equilibria(games, terms)
        assert found.converged.all()
        assert found.gap.max() <= 1e-9
        # The certificate is the solver's own; the gap by its definition is no larger.
        assert (gap(games, found.lotteries, terms) <= found.gap + 1e-15).all()
        np.testing.assert_allclose(found.lotteries.sum(axis=1), 1.0, atol=1e-12)
        assert found.lotteries.min() >= 0.0


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 4, 5, 7, 10, 15, 20])
def test_ten_thousand_games_of_each_size_are_solved(size: int) -> None:
    strengths = np.geomspace(1e-3, 1.0, 4)
    costs = np.random.default_rng([size, 2]).uniform(0.0, 0.5, size)
    for at, strength in enumerate(strengths):
        games = random_games(1000 * size + at, 2500, size)
        for paid in (np.zeros(0), costs):
            assert equilibria(games, Terms(float(strength), costs=paid)).gap.max() <= 1e-9


@pytest.mark.parametrize("strength", [0.001, 0.05, 0.7])
def test_it_is_the_equilibrium_found_by_trying_all_supports(strength: float) -> None:
    games = random_games(3, 20, 5)
    found = equilibria(games, Terms(strength)).lotteries
    np.testing.assert_allclose(found, [enumerated(game, strength) for game in games], atol=1e-9)


@pytest.mark.parametrize("terms", [Terms(0.0), Terms(0.05), Terms(1.0), Terms(0.05, "kl"), Terms(1.0, "kl")])
def test_rock_paper_scissors_is_a_third_each(terms: Terms) -> None:
    np.testing.assert_allclose(equilibria(ROCK_PAPER_SCISSORS, terms).lotteries, 1 / 3, atol=1e-10)


@pytest.mark.parametrize("strength", [0.0, 1e-3, 0.05])
def test_a_condorcet_winner_that_wins_by_more_than_lambda_takes_all(strength: float) -> None:
    games = random_games(4, 50, 6)
    games[:, 2, :], games[:, :, 2] = np.abs(games[:, 2, :]) + 0.06, -np.abs(games[:, :, 2]) - 0.06
    games[:, 2, 2] = 0.0
    np.testing.assert_allclose(equilibria(games, Terms(strength)).lotteries, np.eye(6)[[2] * 50], atol=1e-9)


def test_clones_share_what_the_original_had_and_leave_the_others_alone() -> None:
    games = random_games(5, 50, 5)
    alone = equilibria(games, Terms(0.0)).lotteries
    cloned = np.concatenate([games, games[:, :1]], axis=1)
    cloned = np.concatenate([cloned, cloned[:, :, :1]], axis=2)
    found = equilibria(cloned, Terms(0.0))
    # Payoffs drawn from a density have one maximal lottery; of those with a clone the shortest one halves the share.
    np.testing.assert_allclose(found.lotteries[:, 1:5], alone[:, 1:], atol=1e-7)
    np.testing.assert_allclose(found.lotteries[:, [0, 5]], 0.5 * alone[:, [0, 0]], atol=1e-7)


@pytest.mark.parametrize("size", [3, 5, 12, 30])
def test_maximal_lotteries_agree_with_a_linear_programme(size: int) -> None:
    games = random_games(size + 50, 20, size)
    found = equilibria(games, Terms(0.0))
    assert exploitability(games, found.lotteries).max() <= 1e-9
    np.testing.assert_allclose(found.lotteries, [programmed(game) for game in games], atol=1e-6)


def test_of_many_maximal_lotteries_the_shortest_is_taken() -> None:
    nothing_decided = equilibria(np.zeros((1, 4, 4)), Terms(0.0)).lotteries
    np.testing.assert_allclose(nothing_decided, 0.25, atol=1e-12)
    # The first two tie and beat the rest.
    games = np.zeros((1, 4, 4))
    games[0, :2, 2:], games[0, 2:, :2] = 0.3, -0.3
    np.testing.assert_allclose(equilibria(games, Terms(0.0)).lotteries, [[0.5, 0.5, 0.0, 0.0]], atol=1e-12)


def test_coarse_payoffs_have_maximal_lotteries_too() -> None:
    games = np.round(random_games(8, 300, 7) * 2) / 2
    found = equilibria(games, Terms(0.0))
    assert exploitability(games, found.lotteries).max() <= 1e-9
    shorter = [(programmed(game) ** 2).sum() for game in games]
    assert ((found.lotteries**2).sum(axis=1) <= np.array(shorter) + 1e-7).all()


@pytest.mark.parametrize("strength", [1e-3, 0.05, 1.0])
@pytest.mark.parametrize("size", [2, 5, 20])
def test_entropic_equilibria_are_their_own_best_reply(size: int, strength: float) -> None:
    games = random_games(size, 60, size)
    costs = np.random.default_rng(size).uniform(0.0, 0.3, size)
    terms = Terms(strength, "kl", costs)
    found = equilibria(games, terms)
    assert found.converged.all()
    assert gap(games, found.lotteries, terms).max() <= 1e-9
    reply = ((games @ found.lotteries[..., None])[..., 0] - costs) / strength
    reply = np.exp(reply - reply.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found.lotteries, reply / reply.sum(axis=1, keepdims=True), atol=1e-4)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 8), st.floats(1e-3, 1.0), st.floats(0.01, 1.0))
def test_a_dearer_item_never_gets_more(seed: int, size: int, strength: float, rise: float) -> None:
    games = random_games(seed, 4, size)
    costs = np.random.default_rng(seed).uniform(0.0, 0.5, size)
    before = equilibria(games, Terms(strength, costs=costs)).lotteries
    dearer = costs + rise * np.eye(size)[0]
    after = equilibria(games, Terms(strength, costs=dearer)).lotteries
    assert (after[:, 0] <= before[:, 0] + 1e-9).all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 8), st.sampled_from([0.0, 1e-3, 0.05, 1.0]), st.floats(0.0, 1.0))
def test_hard_budgets_hold_and_nothing_within_them_does_better(
    seed: int, size: int, strength: float, share: float
) -> None:
    games = random_games(seed, 4, size)
    prices = np.random.default_rng(seed).uniform(0.0, 10.0, size)
    limit = float(prices.min() + share * (prices.max() - prices.min()))
    terms = Terms(strength, budget=Budget(prices, limit))
    found = equilibria(games, terms)
    assert found.gap.max() <= 1e-9
    assert (found.lotteries @ prices <= limit + 1e-9).all()
    rivals = np.random.default_rng(seed).dirichlet(np.ones(size), 200)
    cheap = np.eye(size)[prices.argmin()]
    over = np.maximum(rivals @ prices - limit, 0.0) / np.maximum(rivals @ prices - prices.min(), 1e-12)
    for rival in rivals + over[:, None] * (cheap - rivals):
        gained = -head_to_head(games, found.lotteries, rival)
        length = 0.5 * strength * ((found.lotteries**2).sum(axis=1) - (rival**2).sum())
        assert (gained + length <= 1e-8).all()


def test_soft_budgets_are_a_penalty_on_what_is_over() -> None:
    games = random_games(11, 200, 5)
    prices = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    costs, limit = np.array([0.0, 0.1, 0.0, 0.1, 0.0]), 0.35
    soft = equilibria(games, Terms(0.05, costs=costs, budget=Budget(prices, limit, SOFTNESS))).lotteries
    over = np.maximum(soft @ prices - limit, 0.0)
    assert 0.2 < (over > 1e-6).mean() < 1.0
    # At the solution the penalty acts as a cost rho (b'pi - B)_+ b.
    for game, lottery, excess in zip(games, soft, over, strict=True):
        priced = Terms(0.05, costs=costs + SOFTNESS * excess * prices)
        np.testing.assert_allclose(equilibria(game[None], priced).lotteries[0], lottery, atol=1e-9)


def test_budgets_at_their_ends() -> None:
    games, prices = random_games(12, 30, 4), np.array([1.0, 1.0, 2.0, 3.0])
    free = equilibria(games, Terms(0.05)).lotteries
    ample = equilibria(games, Terms(0.05, budget=Budget(prices, 3.0))).lotteries
    np.testing.assert_allclose(ample, free, atol=1e-12)
    least = equilibria(games, Terms(0.05, budget=Budget(prices, 1.0))).lotteries
    assert not least[:, 2:].any()
    two = equilibria(games[:, :2, :2], Terms(0.05)).lotteries
    np.testing.assert_allclose(least[:, :2], two, atol=1e-12)


@pytest.mark.parametrize(
    ("payoffs", "terms"),
    [
        (np.zeros((3, 3)), {}),
        (np.ones((1, 3, 3)), {}),
        (np.full((1, 3, 3), np.nan), {}),
        (np.zeros((1, 3, 3)), {"strength": -1.0}),
        (np.zeros((1, 3, 3)), {"regulariser": "l1"}),
        (np.zeros((1, 3, 3)), {"regulariser": "kl", "strength": 0.0}),
        (np.zeros((1, 3, 3)), {"costs": np.zeros(2)}),
        (np.zeros((1, 3, 3)), {"budget": Budget(np.array([1.0, 2.0, 3.0]), 0.99)}),
        (np.zeros((1, 3, 3)), {"budget": Budget(np.array([1.0, 2.0, 3.0]), np.nan)}),
        (np.zeros((1, 3, 3)), {"budget": Budget(np.array([1.0, 2.0]), 1.5)}),
        (np.zeros((1, 3, 3)), {"budget": Budget(np.array([1.0, 2.0, 3.0]), 0.0, 0.0)}),
    ],
)
def test_what_does_not_fit_is_refused(payoffs: Floats, terms: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        equilibria(payoffs, Terms(**terms))  # type: ignore[arg-type]


def test_the_frontier_falls_to_the_value_of_the_game() -> None:
    game, prices = random_games(13, 1, 6)[0], np.array([0.1, 0.2, 0.4, 0.6, 0.8, 1.0])
    values = frontier(game, prices, np.linspace(0.1, 1.0, 19))
    assert (np.diff(values) <= 1e-9).all()
    assert values[0] == pytest.approx(game[:, 0].max())
    assert values[-1] == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(InvalidInput):
        frontier(game, prices, np.array([0.05]))


def test_the_robust_lottery_is_best_against_the_worst_payoffs() -> None:
    game, width = random_games(14, 1, 5)[0], 0.3 * (1.0 - np.eye(5))
    robust = robust_lottery(game - width)
    worst = ((game - width).T @ robust).min()
    others = np.random.default_rng(0).dirichlet(np.full(5, 0.5), 3000)
    assert worst >= (others @ (game - width)).min(axis=1).max()
    np.testing.assert_allclose(robust_lottery(game), programmed(game), atol=1e-9)


def test_projections_are_the_nearest_points_of_the_simplex() -> None:
    scores = np.random.default_rng(0).normal(size=(50, 6))
    near = project(scores)
    np.testing.assert_allclose(near.sum(axis=1), 1.0)
    for other in np.random.default_rng(1).dirichlet(np.full(6, 0.3), 500):
        # The angle at the nearest point of a convex set is never acute.
        assert (((scores - near) * (other - near)).sum(axis=1) <= 1e-12).all()


def test_gaps_are_the_best_that_a_reply_can_do() -> None:
    games, costs = random_games(15, 20, 4), np.array([0.0, 0.2, 0.1, 0.3])
    lotteries = np.random.default_rng(0).dirichlet(np.ones(4), 20)
    replies = np.random.default_rng(1).dirichlet(np.full(4, 0.7), 20_000)

    def quadratic(shares: Floats) -> Floats:
        return 0.15 * (shares**2).sum(axis=-1) + shares @ costs

    def entropy(shares: Floats) -> Floats:
        return 0.3 * (shares * np.log(np.maximum(4 * shares, 1e-300))).sum(axis=-1) + shares @ costs

    for omega, terms in ((quadratic, Terms(0.3, "l2", costs)), (entropy, Terms(0.3, "kl", costs))):
        gained = np.einsum("rj,njk,nk->nr", replies, games, lotteries) - omega(replies) + omega(lotteries)[:, None]
        found = gap(games, lotteries, terms)
        assert (gained.max(axis=1) <= found + 1e-12).all()
        np.testing.assert_allclose(gained.max(axis=1), found, atol=0.02)
    at_zero = gap(games, lotteries, Terms(0.0, costs=costs))
    gained = np.einsum("njk,nk->nj", games, lotteries) - costs + (lotteries @ costs)[:, None]
    np.testing.assert_allclose(at_zero, gained.max(axis=1))


def test_metrics_of_known_lotteries() -> None:
    rock = np.array([1.0, 0.0, 0.0])
    assert exploitability(ROCK_PAPER_SCISSORS, rock) == pytest.approx(1.0)
    assert head_to_head(ROCK_PAPER_SCISSORS, rock, np.array([0.0, 0.5, 0.5])) == pytest.approx(0.0)
    assert head_to_head(ROCK_PAPER_SCISSORS, rock, np.array([0.0, 0.8, 0.2])) == pytest.approx(0.6)
    assert win_rate(ROCK_PAPER_SCISSORS, np.full((1, 3), 1 / 3)) == pytest.approx(1 / 3)
    lotteries = np.array([[0.6, 0.4, 0.0], [0.0, 0.9991, 0.0009]])
    np.testing.assert_array_equal(winners(lotteries), [[True, True, False], [False, True, False]])
    np.testing.assert_allclose(support_f1(lotteries, np.array([[0.0, 0.5, 0.5], [0.0, 1.0, 0.0]])), [0.5, 1.0])
    np.testing.assert_allclose(total_variation(lotteries), [[0.0, 0.6], [0.6, 0.0]])


def test_scores_of_bradley_terry_payoffs_are_their_own() -> None:
    scores = np.array([[0.5, 0.1, -0.6], [0.0, 0.9, -0.9]])
    game = bradley_terry_game(scores)
    np.testing.assert_allclose(bradley_terry_scores(game), scores)
    np.testing.assert_allclose(borda_scores(game)[:, 0], (game[:, 0, 1] + game[:, 0, 2]) / 2)
    np.testing.assert_array_equal(sole_winner(scores), [[1, 0, 0], [0, 1, 0]])
    # Only one of many cut-off payoffs of 1 would be infinite.
    certain = np.array([[[0.0, 1.0], [-1.0, 0.0]]])
    np.testing.assert_allclose(bradley_terry_scores(certain)[0, 0], np.log(1.95 / 0.05) / 2)
