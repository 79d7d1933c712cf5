"""Policies: optimality conditions on random problems, budgets, criteria, draws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from app.stats.acquisition import (
    Beliefs,
    Design,
    Mode,
    Policy,
    Rules,
    contrast_weight,
    d_weight,
    draw,
    e_weight,
    floor_of,
    pair_row,
    pair_square,
    reliability,
    uniform_propensity,
)
from app.stats.gars import BUILT_IN, BradleyTerry, Estimand, Graph, RankCentrality, outer, quadratic
from app.stats.simulate import Cyclic
from app.stats.types import Floats, Rule
from tests.stats.test_gars import random_graph

ESTIMANDS = (*BUILT_IN, RankCentrality(damping=0.15, name="pagerank"))
SEEDS = st.integers(0, 2**32 - 1)


class Gradients:
    """The same estimand without its closed forms."""

    def __init__(self, estimand: Estimand) -> None:
        self.name = estimand.name
        self.value = estimand.value
        self.gradient_at = estimand.gradient_at


def test_label_noise_is_the_variance_of_the_gradient() -> None:
    mu = np.random.default_rng(0).dirichlet(np.ones(4), (3, 5, 5))
    mu[0, 0, 1] = [0.0, 0.0, 0.0, 1.0]
    rule = Rule(np.array([1.0, 0.0, 0.5, 0.0]), np.array([0.0, 1.0, 0.5, 0.0]))
    expected = (mu * rule.gradient(mu) ** 2).sum(axis=-1)
    assert expected[0, 0, 1] == 0.0
    np.testing.assert_allclose(rule.noise(mu, rule.scores(mu)), expected, rtol=1e-13)


@settings(max_examples=60, deadline=None)
@given(seed=SEEDS, n_items=st.integers(2, 7), chosen=st.sampled_from(ESTIMANDS))
def test_closed_forms_equal_the_gradients(seed: int, n_items: int, chosen: Estimand) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, n_items)
    p = rng.uniform(0.05, 0.95, (3, n_items, n_items))
    root = rng.normal(size=(n_items, n_items))
    coefficient = rng.random(p.shape)
    slow = Gradients(chosen)
    forms = quadratic(chosen, p, graph, root @ root.T)
    twin = quadratic(slow, p, graph, root @ root.T)
    assert np.allclose(forms, twin, rtol=1e-9, atol=1e-12 * max(1.0, float(twin.max())))
    sums, twin = outer(chosen, p, graph, coefficient), outer(slow, p, graph, coefficient)
    assert np.allclose(sums, twin, rtol=1e-9, atol=1e-12 * max(1.0, float(np.abs(twin).max())))


def random_problem(rng: np.random.Generator, *, equal: bool) -> tuple[Floats, Floats]:
    """Sensitivities (u, r), some of them 0, and costs (r,)."""
    pairs = int(rng.integers(2, 40))
    sensitivity = np.exp(rng.normal(0.0, rng.uniform(0.1, 2.0), (int(rng.integers(1, 30)), pairs)))
    sensitivity[rng.random(sensitivity.shape) < 0.05] = 0.0
    return sensitivity, np.full(pairs, 1.3) if equal else rng.uniform(0.2, 3.0, pairs)


@settings(max_examples=150, deadline=None)
@given(
    seed=SEEDS, mode=st.sampled_from(["bernoulli", "single", "one"]), equal=st.booleans(), share=st.floats(0.05, 0.9)
)
def test_policies_are_optimal(seed: int, mode: Mode, equal: bool, share: float) -> None:
    """The conditions of Karush, Kuhn and Tucker: above the floor, h²/pi² = λ c + ν with one ν a context."""
    rng = np.random.default_rng(seed)
    sensitivity, cost = random_problem(rng, equal=equal)
    most = float(cost.sum() if mode == "bernoulli" else cost.min())
    rules = Rules(mode, budget=share * most)
    policy = Policy.calibrated(sensitivity, cost, rules, exponent=1.0)
    pi = policy.propensities(sensitivity)
    height = np.where((sensitivity > 0).any(axis=1, keepdims=True), np.sqrt(sensitivity), 1.0)
    assert (pi >= policy.floor * (1 - 1e-12)).all()
    assert (pi <= 1.0).all()
    spent = (pi @ cost).mean()
    if mode == "one":
        assert np.allclose(pi.sum(axis=1), 1.0, atol=1e-6)
        price = np.zeros(cost.size)
    else:
        assert spent == pytest.approx(rules.budget, rel=1e-6) or (np.isinf(policy.scale) and spent < rules.budget)
        price = policy.price * cost
    if mode == "single":
        assert (pi.sum(axis=1) <= 1.0 + 1e-6).all()
    for row, chances in zip(height, pi, strict=True):
        inside = (chances > policy.floor * (1 + 1e-9)) & (chances < 1.0 - 1e-12)
        own = (row / chances) ** 2 - price
        if inside.any():
            shared = float(np.median(own[inside]))
            scale = float(((row / chances) ** 2)[inside].max())
            assert np.allclose(own[inside], shared, atol=1e-5 * scale)
            if mode == "bernoulli" or (mode == "single" and chances.sum() < 1.0 - 1e-6):
                assert abs(shared) <= 1e-5 * scale
            # What rests on the floor would rather be lower.
            assert (own[chances <= policy.floor] <= shared + 1e-5 * scale).all()


@given(mode=st.sampled_from(["bernoulli", "single", "one"]), budget=st.floats(0.01, 30.0), pairs=st.integers(2, 90))
def test_the_floor_is_what_the_budget_carries(mode: Mode, budget: float, pairs: int) -> None:
    cost = np.ones(pairs)
    asked = Rules(mode, budget, floor=0.5)
    assert floor_of(asked, cost) <= uniform_propensity(asked, cost) + 1e-15
    default = floor_of(Rules(mode, budget), cost)
    assert default == pytest.approx(0.2 * uniform_propensity(Rules(mode, budget), cost))
    if mode != "bernoulli":
        assert default <= 0.2 / pairs + 1e-15


def test_exploration_keeps_the_budget() -> None:
    rng = np.random.default_rng(3)
    sensitivity, cost = random_problem(rng, equal=False)
    for mode in ("bernoulli", "single"):
        rules = Rules(mode, budget=0.4 * float(cost.min()), exploration=0.3)
        policy = Policy.calibrated(sensitivity, cost, rules, exponent=0.7)
        pi = policy.propensities(sensitivity)
        assert (pi @ cost).mean() == pytest.approx(rules.budget, rel=1e-6)
        assert pi.min() >= 0.3 * uniform_propensity(rules, cost)


def test_a_budget_for_all_labels_draws_all() -> None:
    cost = np.ones(6)
    policy = Policy.calibrated(np.ones((4, 6)), cost, Rules("bernoulli", 6.0), exponent=1.0)
    assert (policy.propensities(np.ones((2, 6))) == 1.0).all()
    assert policy.price == 0.0


def beliefs(n_items: int, n_contexts: int) -> Beliefs:
    generator = Cyclic(n_items=n_items)
    x = generator.covariates(np.random.default_rng(8).random((n_contexts, generator.n_covariates)))
    return Beliefs.of([generator.probabilities(x)], generator.rule)


def design(estimand: Estimand, *, n_items: int = 5, budget: float = 4 / 3) -> Design:
    """The true outcome model, A-, D- or E-optimal policies at the budget."""
    off = ~np.eye(n_items, dtype=np.bool_)
    cost = np.ones(int(off.sum()))

    def allocate(sensitivities: Floats) -> Floats:
        mean = sensitivities.mean(axis=0)[:, off]
        policy = Policy.calibrated(mean, cost, Rules("bernoulli", budget), exponent=1.0)
        full = np.zeros((len(mean), n_items, n_items))
        full[:, off] = policy.propensities(mean)
        return full

    return Design(beliefs(n_items, 300), estimand, Graph.complete(n_items), allocate)


@pytest.mark.parametrize("estimand", ESTIMANDS[:3], ids=lambda each: each.name)
def test_criteria_make_what_they_name_small(estimand: Estimand) -> None:
    problem = design(estimand)
    flat = problem.beliefs.covariance(estimand, problem.graph, np.full((300, 5, 5), 4 / 3 / 20) * (1 - np.eye(5)))
    a = problem.covariance(np.eye(5))
    d = problem.covariance(d_weight(problem))
    weight, gap = e_weight(problem)
    e = problem.covariance(weight)
    values = [np.linalg.eigvalsh(each)[1:] for each in (a, d, e, flat)]
    assert np.trace(a) < min(np.trace(d), np.trace(e)) + 1e-12
    assert np.trace(a) < 0.999 * np.trace(flat)
    assert np.log(values[1]).sum() <= np.log(values[0]).sum() + 1e-12
    assert np.log(values[1]).sum() < np.log(values[3]).sum()
    assert values[2][-1] <= values[0][-1]
    assert 0.0 <= gap <= 0.03


def test_contrasts_weigh_open_pairs() -> None:
    opened = np.zeros((4, 4), dtype=np.bool_)
    opened[1, 2] = True
    weight = contrast_weight(opened)
    difference = np.array([0.0, 1.0, -1.0, 0.0])
    assert difference @ weight @ difference == pytest.approx(4 / 2 + 2 * 0.25 / 4)
    assert np.trace(weight) == pytest.approx(1.25)
    assert np.array_equal(contrast_weight(np.zeros((4, 4), dtype=np.bool_)), np.eye(4) / 4)


def test_reliability_tells_signal_from_noise() -> None:
    rng = np.random.default_rng(5)
    signal, noise = rng.normal(0.0, 1.0, 4000), rng.normal(0.0, 0.5, (5, 4000))
    assert reliability(np.exp(signal + noise)) == pytest.approx(1 - 0.25 / (1 + 0.05), abs=0.03)
    assert reliability(np.exp(np.zeros(4000) + noise)) == 0.0
    assert reliability(np.ones((1, 10))) == 0.0


@pytest.mark.parametrize("mode", ["bernoulli", "single", "one"])
def test_draws_follow_the_propensities(mode: Mode) -> None:
    rng = np.random.default_rng(11)
    pi = rng.dirichlet(np.full(6, 0.7)) * (1.0 if mode == "one" else 0.6)
    runs = 20_000
    context, pair = draw(np.tile(pi, (runs, 1)), mode, rng)
    counts = np.bincount(pair, minlength=6)
    low, high = binom.ppf(1e-5, runs, pi), binom.ppf(1 - 1e-5, runs, pi)
    assert ((counts >= low) & (counts <= high)).all()
    per_context = np.bincount(context, minlength=runs)
    assert per_context.max() <= (6 if mode == "bernoulli" else 1)
    if mode == "one":
        assert per_context.min() == 1


def test_bt_needs_most_where_the_outcome_is_open() -> None:
    """Known answer: at p = ½ and p = .9 the sensitivity of BT is 1/(p (1-p)), so the lopsided pair gets more."""
    p = np.full((1, 1, 3, 3), 0.5)
    p[..., 0, 1] = p[..., 1, 0] = 0.9
    noise = p * (1 - p)
    found = Beliefs(p, noise).sensitivities(BradleyTerry(), Graph.complete(3), np.eye(3))[0, 0]
    assert found[0, 1] / found[0, 2] == pytest.approx(0.25 / 0.09)


def test_pairs_are_a_row_and_a_square() -> None:
    square = np.arange(9.0)[None].reshape(1, 3, 3)
    np.testing.assert_array_equal(pair_row(square), [[1.0, 2.0, 3.0, 5.0, 6.0, 7.0]])
    np.testing.assert_array_equal(pair_square(pair_row(square)), square * (1.0 - np.eye(3)))
    assert pair_row(np.zeros((2, 4, 5, 5))).shape == (2, 4, 20)
