"""From votes on menus to payoffs and lotteries at any context."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.learners import menus
from app.learners.menus import MenuPairs, training
from app.learners.payoffs.contextual import ContextualPayoffs, Nuisances, fit_nuisances
from app.learners.payoffs.policy import SHAPE, GapLoss, fit_policy, read_policy
from app.learners.payoffs.regression import PENALTIES, Targets, design, regress
from app.learners.payoffs.second_stage import read
from app.learners.registry import learner
from app.stats.errors import InvalidInput
from app.stats.feedback import Menus, MenuSample, uniform
from app.stats.games import Terms, equilibria, exploitability, gap, project
from app.stats.simulate.electorate import Electorate
from app.stats.types import Covariates, Floats


def board(electorate: Electorate, n: int) -> tuple[Covariates, MenuSample]:
    drawn = electorate.draw(n, seed=0)
    rows = np.arange(n)
    return Covariates(drawn.x), MenuSample(electorate.menus, drawn.votes, rows % 3, rows, rows)


@pytest.fixture(scope="module")
def fitted() -> Nuisances:
    on = Electorate(3, "winners", 0)
    x, sample = board(on, 600)
    return fit_nuisances(x, sample, MenuPairs(learner("davidson")), uniform(on.menus))


def test_pairs_of_a_vote_are_read_once_with_what_else_is_on_the_menu() -> None:
    on = Electorate(3, "winners", 0)
    x, sample = board(on, 30)
    found = training(x, sample, np.arange(len(sample.votes)) < 2)
    assert found.left.size == 6
    assert (found.left < found.right).all()
    np.testing.assert_array_equal(np.sort(found.outcome[:3]) == 2, [False, False, True])
    seen = found.x.x[found.pattern]
    np.testing.assert_array_equal(seen[:, 5:].sum(axis=1), 3)
    assert seen[np.arange(6), 5 + found.left].all()


def test_margins_on_pairs_are_near_the_truth() -> None:
    on = Electorate(1, "pairs", 0)
    x, sample = board(on, 1500)
    model = MenuPairs(learner("davidson")).fit(x, sample, np.ones(len(sample.votes), dtype=np.bool_), seed=0)
    fresh = on.covariates(np.random.default_rng(1).random((300, 5)))
    error = model.margins(Covariates(fresh), on.menus) - on.margins(fresh)
    assert np.sqrt((error**2).mean()) < 0.5


@pytest.mark.parametrize("form", ["plug-in", "offset", "paper"])
def test_payoffs_are_antisymmetric_clipped_and_the_same_from_bytes(fitted: Nuisances, form: str) -> None:
    stage = fitted.second_stage(form, seed=0)  # type: ignore[arg-type]
    x = Covariates(np.random.default_rng(2).uniform(-1.0, 1.0, (40, 5)))
    payoffs = ContextualPayoffs(fitted, stage).payoffs(x)
    np.testing.assert_array_equal(payoffs, -payoffs.transpose(0, 2, 1))
    assert np.abs(payoffs).max() <= 1.0
    again = ContextualPayoffs(fitted, read(stage.to_bytes())).payoffs(x)
    np.testing.assert_array_equal(payoffs, again)


def test_auto_takes_the_form_of_least_loss(fitted: Nuisances) -> None:
    stage = fitted.second_stage("auto", seed=0)
    assert stage.loss[stage.form] == min(stage.loss.values())
    assert set(stage.loss) == {"plug-in", "offset", "paper"}
    assert stage.loss["plug-in"] == 0.0


def test_the_offset_form_mends_a_biased_model(fitted: Nuisances) -> None:
    on = Electorate(3, "winners", 0)
    wrong = replace(fitted.corrections, start=fitted.corrections.start + 0.3)
    shift = fitted.corrections.weight * 0.3
    biased = replace(fitted, corrections=replace(wrong, excess=fitted.corrections.excess - shift))
    x = on.covariates(np.random.default_rng(3).random((300, 5)))
    start, slope = biased.plug_in(Covariates(x))
    values = biased.second_stage("offset", seed=0).values(x, start + 0.3, slope)
    truth = on.menus.values(on.payoffs(x))
    assert abs((values - truth).mean()) < 0.15
    assert abs((start + 0.3 - truth).mean()) > 0.2


def test_regressions_find_a_step_and_leave_noise_alone() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (900, 3))
    step = np.where(x[:, 0] > 0, 0.5, -0.5)
    value = np.stack([step + rng.normal(0.0, 0.5, 900), step + rng.normal(0.0, 0.1, 900)], axis=1)
    weight = rng.uniform(1.0, 9.0, (900, 2))
    # The second is sparse: a line through few points.
    weight[100:, 1] = 0.0
    found = regress(Targets(x, value, weight, np.arange(900) % 3), seed=0)
    predicted = found.predict(x)
    assert ((predicted[:, 0] - step) ** 2).mean() < 0.02
    assert found.forest.texts[1] == ""
    assert np.corrcoef(predicted[:, 1], step)[0, 1] > 0.8
    noise = rng.normal(size=(900, 2))
    nothing = regress(Targets(x, noise, weight, np.arange(900) % 3), seed=0).predict(x)
    assert np.abs(nothing).mean() < 0.15


def test_the_gap_loss_has_the_gradient_it_says() -> None:
    rng = np.random.default_rng(0)
    upper = np.triu(rng.uniform(-1.0, 1.0, (30, 4, 4)), 1)
    games = upper - upper.transpose(0, 2, 1)
    scores = rng.normal(0.0, 0.4, 120)

    def loss(at: Floats) -> float:
        return float(gap(games, project(at.reshape(4, 30).T), Terms(0.2)).sum())

    slope = GapLoss(games, 0.2).newton(scores)[0]
    numeric = [(loss(scores + 1e-6 * unit) - loss(scores - 1e-6 * unit)) / 2e-6 for unit in np.eye(120)]
    np.testing.assert_allclose(slope, numeric, atol=1e-5)


def test_a_policy_learns_the_equilibria_of_payoffs_that_follow_the_context() -> None:
    on = Electorate(3, "pairs", 1)
    x = on.covariates(np.random.default_rng(0).random((1500, 5)))
    games = on.payoffs(x)
    policy = fit_policy(x, games, Terms(0.05), seed=0, shape=replace(SHAPE, rounds=60))
    fresh = on.covariates(np.random.default_rng(1).random((400, 5)))
    lotteries = policy.lotteries(fresh)
    np.testing.assert_allclose(lotteries.sum(axis=1), 1.0)
    assert (lotteries == 0.0).mean() > 0.2
    learnt = exploitability(on.payoffs(fresh), lotteries).mean()
    overall = equilibria(games.mean(axis=0)[None], Terms(0.05)).lotteries
    assert learnt < 0.5 * exploitability(on.payoffs(fresh), overall[0]).mean()
    again = read_policy(policy.to_bytes())
    np.testing.assert_array_equal(again.lotteries(fresh), lotteries)
    np.testing.assert_allclose(policy.lotteries(fresh[:1]), lotteries[:1], atol=1e-12)


def test_costs_move_a_policy_to_what_is_cheap() -> None:
    x = np.random.default_rng(0).uniform(-1.0, 1.0, (200, 2))
    games = np.zeros((200, 3, 3))
    dear = fit_policy(x, games, Terms(0.05, costs=np.array([0.2, 0.0, 0.0])), seed=0).lotteries(x)
    np.testing.assert_allclose(dear, [[0.0, 0.5, 0.5]] * 200, atol=1e-9)
    plain = fit_policy(np.zeros((200, 0)), games, Terms(0.05), seed=0)
    np.testing.assert_allclose(plain.lotteries(np.zeros((2, 0))), 1 / 3, atol=1e-9)


@pytest.mark.parametrize("terms", [Terms(0.0), Terms(0.1, "kl")])
def test_terms_without_this_gap_loss_are_refused(terms: Terms) -> None:
    with pytest.raises(InvalidInput):
        fit_policy(np.zeros((3, 1)), np.zeros((3, 2, 2)), terms, seed=0)


def test_bytes_of_another_kind_are_refused(fitted: Nuisances) -> None:
    with pytest.raises(InvalidInput):
        read_policy(fitted.second_stage("plug-in", seed=0).to_bytes())


def test_a_ridge_is_the_solution_of_its_normal_equations() -> None:
    """Of every target on its own rows, under the penalty that predicts the inner folds best."""
    rng = np.random.default_rng(4)
    x, weight = rng.normal(size=(90, 3)), np.where(rng.random((90, 5)) < 0.4, rng.uniform(0.5, 2.0, (90, 5)), 0.0)
    value = x @ rng.normal(size=(3, 5)) + rng.normal(size=(90, 5))
    targets = Targets(x, value, weight, np.arange(90) % 3)
    found = regress(targets, seed=0, trees=False)
    on = design(x, found.centre, found.scale)

    def solved(kept: Floats, penalty: float) -> Floats:
        columns = []
        for target in range(5):
            scaled = kept * targets.scaled[:, target]
            columns.append(
                np.linalg.solve(on.T * scaled @ on + penalty * np.eye(4), on.T @ (scaled * value[:, target]))
            )
        return np.stack(columns, axis=1)

    crossed = {}
    for penalty in PENALTIES[:-1]:
        predicted = [on @ solved((targets.part != fold).astype(np.float64), penalty) for fold in range(3)]
        crossed[penalty] = np.choose(targets.part[:, None], predicted)
    best = min(crossed, key=lambda penalty: float((targets.scaled * (value - crossed[penalty]) ** 2).sum()))
    np.testing.assert_allclose(found.linear, solved(np.ones(90), best), atol=1e-9)
    np.testing.assert_allclose(found.crossed[weight > 0], crossed[best][weight > 0], atol=1e-9)
    assert not found.crossed[weight == 0].any()


@pytest.mark.parametrize("x", [np.zeros((600, 0)), np.full((600, 2), 3.0), np.full((600, 1), np.nan)])
def test_where_no_covariate_tells_rows_apart_each_target_is_its_weighted_mean(x: Floats) -> None:
    rng = np.random.default_rng(0)
    value, weight = rng.normal(0.4, 1.0, (600, 2)), rng.uniform(0.5, 1.5, (600, 2))
    fitted = regress(Targets(x, value, weight, np.arange(600) % 3), seed=0)
    mean = (weight * value).sum(axis=0) / weight.sum(axis=0)
    np.testing.assert_allclose(fitted.predict(x[:5]), np.tile(mean, (5, 1)), atol=0.05)


def test_where_no_covariate_tells_contexts_apart_the_policy_is_one_lottery() -> None:
    cycle = np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]])
    policy = fit_policy(np.full((50, 1), 2.0), np.tile(cycle, (50, 1, 1)), Terms(0.05), seed=0)
    np.testing.assert_allclose(policy.lotteries(np.array([[2.0], [7.0]])), 1.0 / 3.0, atol=1e-9)


@pytest.mark.parametrize("name", ["davidson", "lightgbm"])
def test_margins_of_a_large_menu_are_those_of_its_pairs_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    electorate = Electorate(3, "rankings", 0)
    drawn = electorate.draw(200, seed=0)
    context = np.arange(200)
    sample = MenuSample(electorate.menus, drawn.votes, context % 3, context, context)
    model = MenuPairs(learner(name)).fit(Covariates(drawn.x), sample, np.ones(len(drawn.votes), dtype=np.bool_), seed=0)
    members = np.array([[True] * 5, [True, True, False, False, True]])
    asked = Covariates(drawn.x[:7])
    together = model.margins(asked, Menus(members))
    monkeypatch.setattr(menus, "AT_ONCE", 20)
    np.testing.assert_allclose(model.margins(asked, Menus(members)), together, atol=1e-12)
    for cell, (menu, first, second) in enumerate(zip(*Menus(members).cells, strict=True)):
        seen = menus.described(asked, np.tile(members[menu], (7, 1)))
        mu = model.model.probabilities_at(seen, np.full(7, first), np.full(7, second))
        np.testing.assert_allclose(together[:, cell], mu[:, 0] - mu[:, 1], atol=1e-12)
