"""The classifier: how close it comes, what it must not depend on, and votes too few to learn from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.learners import DavidsonLearner, LightGBMLearner, learner, load_model
from app.learners.classifier import model as classifier
from app.learners.classifier.model import Classifier
from app.learners.constant import ConstantRates
from app.learners.trees import Shape, least
from app.stats.simulate.cyclic import Cyclic
from app.stats.types import Covariates, Floats, Training
from tests.learners.trainings import RULES, drawn, error, scattered, training_of

SMALL = LightGBMLearner((Shape(leaves=7, rounds=60, patience=8),))


@pytest.fixture(scope="module")
def board() -> Training:
    return drawn(Cyclic(world=3), 500, seed=3)


@pytest.fixture(scope="module")
def fitted(board: Training) -> Classifier:
    model = LightGBMLearner().fit(board, seed=1)
    assert isinstance(model, Classifier)
    return model


def two_items(chance: Floats, *, x: Floats | None = None, margins: Floats | None = None) -> Training:
    """A vote for each chance that the left one of two items wins."""
    n_votes = chance.size
    outcome = (np.random.default_rng(6).random(n_votes) > chance).astype(np.int64)
    zero = np.zeros(n_votes, dtype=np.int64)
    covariates = Covariates(np.zeros((n_votes, 0)) if x is None else x, margins)
    return training_of(covariates, (np.arange(n_votes), zero, zero + 1, outcome), n_items=2, rule=RULES["binary"])


def test_probabilities_of_one_pair_are_those_of_all(
    board: Training, fitted: Classifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    mu = fitted.probabilities(board.x)
    np.testing.assert_allclose(mu.sum(axis=-1), 1.0, atol=1e-14)
    assert (mu > 0).all()
    at = fitted.probabilities_at(board.x.take(board.pattern), board.left, board.right)
    np.testing.assert_array_equal(at, mu[board.pattern, board.left, board.right])
    monkeypatch.setattr(classifier, "_CHUNK", 1000)
    np.testing.assert_array_equal(fitted.probabilities(board.x), mu)
    np.testing.assert_array_equal(fitted.probabilities_at(board.x.take(board.pattern), board.left, board.right), at)


def test_nothing_asked_is_nothing_answered(fitted: Classifier) -> None:
    none, nobody = Covariates(np.zeros((0, 5))), np.zeros(0, dtype=np.int64)
    assert fitted.probabilities(none).shape == (0, 5, 5, 3)
    assert fitted.probabilities_at(none, nobody, nobody).shape == (0, 3)


def test_a_refit_and_a_round_trip_are_equal_to_the_bit(board: Training, fitted: Classifier) -> None:
    body = fitted.to_bytes()
    assert LightGBMLearner().fit(board, seed=1).to_bytes() == body
    again = load_model(body)
    assert again.to_bytes() == body
    np.testing.assert_array_equal(again.probabilities(board.x), fitted.probabilities(board.x))


def test_a_vote_of_weight_two_is_two_votes(board: Training) -> None:
    names = ("pattern", "left", "right", "outcome", "group")
    twice = replace(board, **{name: np.repeat(getattr(board, name), 2) for name in names})
    twice = replace(twice, weight=np.ones(twice.left.size))
    heavy = replace(board, weight=np.full(board.left.size, 2.0))
    assert SMALL.fit(twice, seed=1).to_bytes() == SMALL.fit(heavy, seed=1).to_bytes()


def test_heavy_votes_are_heard_more() -> None:
    """As many votes for left as for right; those for left are heavy where the covariate is positive."""
    x = np.random.default_rng(2).normal(size=(800, 1))
    votes = two_items(np.full(800, 0.5), x=x)
    weight = np.where((votes.outcome == 0) == (x[:, 0] > 0), 9.0, 1.0)
    mu = SMALL.fit(replace(votes, weight=weight), seed=0).probabilities(Covariates(np.array([[1.0], [-1.0]])))
    np.testing.assert_allclose(mu[:, 0, 1, 0], [0.9, 0.1], atol=0.06)


def test_the_order_of_votes_changes_nothing(board: Training) -> None:
    order = np.random.default_rng(0).permutation(board.left.size)
    names = ("pattern", "left", "right", "outcome", "group", "weight")
    shuffled = replace(board, **{name: getattr(board, name)[order] for name in names})
    assert SMALL.fit(shuffled, seed=1).to_bytes() == SMALL.fit(board, seed=1).to_bytes()


def test_groups_of_alike_votes_do_not_teach_their_noise() -> None:
    """Forty contexts of fifty votes, each context's favourite drawn: only other contexts say what a new one is like."""
    generator = np.random.default_rng(9)
    x = np.repeat(generator.normal(size=(40, 3)), 50, axis=0)
    training = two_items(np.repeat(generator.choice([0.1, 0.9], 40), 50), x=x)
    together = replace(training, group=np.repeat(np.arange(40), 50))
    fresh = Covariates(generator.normal(size=(500, 3)))
    spread = [float(SMALL.fit(each, seed=0).probabilities(fresh)[:, 0, 1, 0].std()) for each in (training, together)]
    assert spread[1] < spread[0] / 2


def test_the_shape_of_least_held_out_loss_is_taken(board: Training) -> None:
    stump, bush = Shape(leaves=2, rounds=4, patience=4), Shape(leaves=15, rounds=40, patience=8)
    both, alone = (LightGBMLearner(grid).fit(board, seed=1).to_bytes() for grid in ((stump, bush), (bush,)))
    assert both == alone


def test_rounds_end_after_losses_that_are_no_better() -> None:
    told: list[float] = []

    def losses() -> object:
        for loss in (3.0, 2.0, 2.5, 1.5, 1.6, 1.5, 9.0, 0.0):
            told.append(loss)
            yield loss

    assert least(losses(), 3) == (3, 1.5)
    assert told[-1] == 9.0


def test_missing_covariates_are_learnt_from() -> None:
    missing = np.random.default_rng(3).random(1500) < 0.5
    x = np.where(missing, np.nan, np.random.default_rng(4).integers(-1, 2, 1500))[:, None]
    model = SMALL.fit(two_items(np.where(missing, 0.9, 0.1), x=x), seed=0)
    mu = model.probabilities(Covariates(np.array([[np.nan], [0.0]])))[:, 0, 1, 0]
    np.testing.assert_allclose(mu, [0.9, 0.1], atol=0.08)


def test_an_item_without_votes_has_chances_between_those_of_the_others() -> None:
    board = replace(drawn(Cyclic(), 500, seed=0), n_items=6)
    mu = SMALL.fit(board, seed=0).probabilities(board.x)
    assert mu[:, 5, :5].min() > mu[:, :5, :5].min() / 2
    np.testing.assert_allclose(mu.sum(axis=-1), 1.0, atol=1e-12)


@pytest.mark.parametrize("outcome", [0, 1, 2])
def test_one_outcome_only_leaves_its_rate(outcome: int) -> None:
    zero = np.zeros(50, dtype=np.int64)
    x = Covariates(np.random.default_rng(0).normal(size=(50, 2)))
    training = training_of(x, (np.arange(50), zero, zero + 1, zero + outcome), n_items=2, rule=RULES["ternary"])
    mu = LightGBMLearner().fit(training, seed=0).probabilities(x)[:, 0, 1]
    assert mu[:, outcome].min() >= 50 / 53
    assert mu.min() > 0.001


@settings(max_examples=40, deadline=None)
@given(
    rule=st.sampled_from(sorted(RULES)),
    n_votes=st.integers(0, 12),
    n_items=st.integers(2, 5),
    width=st.integers(0, 3),
    seed=st.integers(0, 10**6),
)
def test_few_votes_give_a_model_between_prior_and_votes(
    rule: str, n_votes: int, n_items: int, width: int, seed: int
) -> None:
    training = scattered(RULES[rule], (n_votes, n_items, width), seed=seed)
    model = LightGBMLearner().fit(training, seed=seed)
    mu = model.probabilities(training.x)
    assert mu.min() > 1e-2
    np.testing.assert_allclose(mu.sum(axis=-1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(load_model(model.to_bytes()).probabilities(training.x), mu)


def test_noise_leaves_about_the_constant_rates() -> None:
    training = scattered(RULES["ternary"], (3000, 4, 3), seed=1)
    off = LightGBMLearner().fit(training, seed=0).probabilities(training.x)[:, ~np.eye(4, dtype=bool)]
    assert np.abs(off - 1 / 3).mean() < 0.04


def test_a_fit_that_lightgbm_refuses_leaves_the_constant_rates(caplog: pytest.LogCaptureFixture) -> None:
    model = LightGBMLearner((Shape(leaves=1),)).fit(scattered(RULES["ternary"], (40, 3, 2), seed=0), seed=0)
    assert isinstance(model, ConstantRates)
    assert "lightgbm could not be fitted to 40 votes" in caplog.text


def test_it_is_known_by_name() -> None:
    assert isinstance(learner("lightgbm"), LightGBMLearner)


@pytest.mark.parametrize(("n_rows", "bounds"), [(1000, (0.085, 0.110)), (3000, (0.065, 0.085))])
def test_mu_is_close_on_boards_with_cycles_and_davidson_closer(n_rows: int, bounds: tuple[float, float]) -> None:
    """About 2,800 and 8,500 votes; K = 5, three outcomes, five covariates."""
    board = Cyclic()
    training = drawn(board, n_rows, seed=1)
    found, davidson = (error(each.fit(training, seed=0), board) for each in (LightGBMLearner(), DavidsonLearner()))
    assert bounds[0] < found < bounds[1]
    assert davidson < 0.7 * found
