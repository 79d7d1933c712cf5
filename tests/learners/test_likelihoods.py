"""The likelihoods' analytic gradients and Hessians, against finite differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from app.learners.davidson.boosting import LevelObjective, UtilityObjective
from app.learners.davidson.categories import Categories
from app.learners.davidson.cells import Appearances, collapse, held_out, shares
from app.learners.davidson.levels import Ballot, LevelLikelihood
from app.learners.davidson.preference import Preference
from app.learners.davidson.utilities import UtilityLikelihood
from app.learners.trees import Objective
from app.stats.ridge import Family, Fit, climb, fit_ridge
from app.stats.scaling import Scaling
from app.stats.types import Covariates, Floats, Training
from tests.learners.trainings import RULES, scattered, slope_by_differences

EVERY_RULE = pytest.mark.parametrize("rule", RULES)


def judged(training: Training) -> Training:
    """The same votes with two judges' antisymmetric margins."""
    raw = np.random.default_rng(8).normal(size=(len(training.x), training.n_items, training.n_items, 2))
    x = Covariates(training.x.x, raw - raw.transpose(0, 2, 1, 3))
    return Training(
        x,
        training.pattern,
        training.left,
        training.right,
        training.outcome,
        np.random.default_rng(9).uniform(0.5, 2.0, training.left.size),
        training.group,
        training.n_items,
        training.rule,
    )


def utility_likelihood(rule: str) -> tuple[UtilityLikelihood, UtilityObjective]:
    training = judged(scattered(RULES[rule], (60, 4, 2), seed=1))
    categories, cells = Categories.of(training.rule), collapse(training, held_out(training.group, seed=0))
    graded = cells.take(categories.graded[cells.outcome])
    appearances, preference = Appearances.of(graded, n_items=4), Preference.of(categories, graded.outcome)
    design = Scaling.of(training.x.x).design(training.x.x)
    likelihood = UtilityLikelihood.of(design, graded, appearances, preference=preference)
    linear = likelihood.unpack(np.random.default_rng(2).normal(size=likelihood.size))
    difference = likelihood.differences(linear)
    return likelihood, UtilityObjective(preference, appearances, graded, difference, linear.levels, graded.kept)


def level_likelihood(rule: str) -> tuple[LevelLikelihood, LevelObjective]:
    training = scattered(RULES[rule], (60, 4, 2), seed=1)
    cells, generator = collapse(training, held_out(training.group, seed=0)), np.random.default_rng(3)
    ballot = Ballot(Categories.of(training.rule), cells, generator.normal(size=len(cells)))
    design = Scaling.of(training.x.x).design(training.x.x)
    likelihood = LevelLikelihood(design, ballot, 4, cells.weight)
    levels = likelihood.levels(likelihood.unpack(generator.normal(size=likelihood.start().w.size)))
    patterns, place = np.unique(cells.pattern, return_inverse=True)
    return likelihood, LevelObjective(ballot, levels, place, patterns.size, cells.kept)


def hessian_diagonal(gradient: Callable[[Floats], Floats], w: Floats) -> Floats:
    step = 1e-5 * np.eye(w.size)
    return np.array([(gradient(w + e)[i] - gradient(w - e)[i]) / 2e-5 for i, e in enumerate(step)])


@EVERY_RULE
def test_the_utilities_gradient_and_curvature_are_those_of_the_value(rule: str) -> None:
    likelihood, _ = utility_likelihood(rule)
    w = np.random.default_rng(4).normal(size=likelihood.size)
    _, gradient = likelihood.value_and_gradient(w)
    np.testing.assert_allclose(
        gradient, slope_by_differences(lambda v: likelihood.value_and_gradient(v)[0], w), atol=1e-6
    )
    expected = hessian_diagonal(lambda v: likelihood.value_and_gradient(v)[1], w)
    np.testing.assert_allclose(likelihood.curvature(w), expected, atol=1e-6)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule != "binary"])
def test_the_levels_gradient_and_curvature_are_those_of_the_value(rule: str) -> None:
    likelihood, _ = level_likelihood(rule)
    w = np.random.default_rng(4).normal(size=likelihood.start().w.size)
    _, gradient = likelihood.value_and_gradient(w)
    np.testing.assert_allclose(
        gradient, slope_by_differences(lambda v: likelihood.value_and_gradient(v)[0], w), atol=1e-6
    )
    own = likelihood.curvature(w)
    expected = hessian_diagonal(lambda v: likelihood.value_and_gradient(v)[1], w)
    # An item is never on both sides, so even the items' diagonal is exact.
    np.testing.assert_allclose(own, expected, atol=1e-6)


@pytest.mark.parametrize("rule", ["ternary", "graded"])
def test_utility_trees_follow_the_kept_votes(rule: str) -> None:
    _, objective = utility_likelihood(rule)
    kept_as_held = replace(objective, cells=replace(objective.cells, held=objective.cells.kept))
    check_newton(objective, kept_as_held, size=objective.appearances.item.size)


@pytest.mark.parametrize("rule", ["ternary", "graded"])
def test_level_trees_follow_the_kept_votes(rule: str) -> None:
    _, objective = level_likelihood(rule)
    cells = objective.ballot.cells
    kept_as_held = replace(objective, ballot=replace(objective.ballot, cells=replace(cells, held=cells.kept)))
    check_newton(objective, kept_as_held, size=objective.width * len(objective.levels))


def check_newton(objective: Objective, kept_as_held: Objective, *, size: int) -> None:
    scores = np.random.default_rng(5).normal(size=size)
    gradient, hessian = objective.newton(scores)
    np.testing.assert_allclose(gradient, slope_by_differences(kept_as_held.held_loss, scores), atol=1e-6)
    np.testing.assert_allclose(hessian, hessian_diagonal(lambda v: objective.newton(v)[0], scores), atol=1e-6)


def test_rows_held_out_have_no_gradient() -> None:
    _, objective = utility_likelihood("ternary")
    only_held = objective.appearances.collect(objective.cells.kept) == 0
    gradient, hessian = objective.newton(np.zeros(only_held.size))
    assert only_held.any()
    assert not gradient[only_held].any()
    assert not hessian[only_held].any()


class Quadratic:
    """½ Σ h (w - m)²: the posterior is known in closed form."""

    def __init__(self, centre: Floats, curve: Floats) -> None:
        self.centre, self.curve = centre, curve

    def value_and_gradient(self, w: Floats) -> tuple[float, Floats]:
        return float(0.5 * self.curve @ (w - self.centre) ** 2), self.curve * (w - self.centre)

    def curvature(self, w: Floats) -> Floats:  # noqa: ARG002
        return self.curve


def test_the_mode_is_the_shrunken_centre() -> None:
    centre, curve = np.array([1.0, -2.0, 3.0]), np.array([5.0, 0.0, 100.0])
    found = climb(Quadratic(centre, curve), Fit(np.zeros(3), np.full(3, 2.0)))
    np.testing.assert_allclose(found.w, centre * curve / (curve + 2.0), atol=1e-4)


@pytest.mark.parametrize("spread", [0.3, 3.0])
def test_the_priors_variance_is_learnt_and_capped(spread: float) -> None:
    centre = np.random.default_rng(6).normal(0.0, np.hypot(spread, 0.1), 400)
    start = Fit(np.zeros(400), np.full(400, 1.0))
    family = Family(np.arange(400)[None], guess=1.0, cap=2.0)
    found = fit_ridge(Quadratic(centre, np.full(400, 100.0)), start, [family])
    np.testing.assert_allclose(1 / found.precision, min(spread**2, 2.0), rtol=0.35)


@pytest.mark.parametrize("size", [(4, 50), (1, 3), (3, 0), (0, 0)])
def test_shares_are_those_of_powers_of_e(size: tuple[int, int]) -> None:
    logits = np.random.default_rng(4).normal(scale=400.0, size=size)
    found, total = shares(logits)
    whole = np.logaddexp.reduce(logits, axis=0)
    np.testing.assert_allclose(total, whole, rtol=1e-15)
    np.testing.assert_allclose(found, np.exp(logits - whole), rtol=0, atol=1e-13)
