"""The davidson learner: what it recovers, what it must not depend on, and votes too few to learn from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.learners import DavidsonLearner, learner, load_model
from app.learners.constant import ConstantRates
from app.learners.davidson.cells import collapse, held_out
from app.learners.davidson.model import DavidsonModel
from app.learners.trees import Shape
from app.stats.errors import InvalidInput
from app.stats.simulate.arena import Arena
from app.stats.simulate.cyclic import Cyclic
from app.stats.types import Covariates, Floats, Ints, Training
from tests.learners.trainings import RULES, drawn, error, scattered, training_of

WITHOUT_TREES = DavidsonLearner(Shape(rounds=0))
BLIND = Covariates(np.zeros((1, 0)))


def blind_votes(margins: Floats, ties: float, *, n_votes: int) -> Training:
    """Votes without covariates, D known for every ordered pair, exp(ties) the weight of a tie."""
    generator, n_items = np.random.default_rng(7), len(margins)
    left = generator.integers(n_items, size=n_votes)
    right = (left + 1 + generator.integers(n_items - 1, size=n_votes)) % n_items
    d = margins[left, right]
    weight = np.stack([np.exp(d / 2), np.exp(-d / 2), np.full(n_votes, np.exp(ties))], axis=1).cumsum(axis=1)
    outcome = (weight <= generator.random(n_votes)[:, None] * weight[:, -1:]).sum(axis=1)
    votes = np.zeros(n_votes, dtype=np.int64), left, right, outcome
    training = training_of(BLIND, votes, n_items=n_items, rule=RULES["ternary"])
    return replace(training, group=np.arange(n_votes))


def log_odds(model: DavidsonModel | ConstantRates, x: Covariates = BLIND) -> Floats:
    """D of every ordered pair, as the model has it."""
    mu = model.probabilities(x)[0]
    return np.log(mu[..., 0] / mu[..., 1])


@pytest.fixture(scope="module")
def board() -> Training:
    return drawn(Cyclic(world=3), 500, seed=3)


@pytest.fixture(scope="module")
def fitted(board: Training) -> DavidsonModel:
    model = DavidsonLearner().fit(board, seed=1)
    assert isinstance(model, DavidsonModel)
    assert all(model.utility_trees.texts + model.level_trees.texts)
    return model


def test_ties_position_and_utilities_are_recovered() -> None:
    utility, position, ties = np.array([0.8, 0.0, -0.3, -0.5]), 0.4, -0.6
    model = DavidsonLearner().fit(blind_votes(utility[:, None] - utility + position, ties, n_votes=60_000), seed=0)
    expected = utility[:, None] - utility + position
    apart = ~np.eye(4, dtype=bool)
    np.testing.assert_allclose(log_odds(model)[apart], expected[apart], atol=0.09)
    mu = model.probabilities(BLIND)[0]
    tied = np.exp(ties) / (np.exp(ties) + 2 * np.cosh(expected / 2))
    np.testing.assert_allclose(mu[..., 2][apart], tied[apart], atol=0.015)


def test_a_cycle_goes_into_the_pair_effects() -> None:
    cycle = np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]])
    model = DavidsonLearner().fit(blind_votes(cycle, -1.0, n_votes=20_000), seed=0)
    assert isinstance(model, DavidsonModel)
    np.testing.assert_allclose(log_odds(model), cycle, atol=0.15)
    np.testing.assert_allclose(model.pairs.gamma[:, 0], [1.0, -1.0, 1.0], atol=0.15)


def test_no_cycle_leaves_hardly_a_pair_effect() -> None:
    utility = np.linspace(-1, 1, 6)
    model = DavidsonLearner().fit(blind_votes(utility[:, None] - utility, -1.0, n_votes=3000), seed=0)
    assert isinstance(model, DavidsonModel)
    assert np.abs(model.pairs.gamma).max() < 0.05


def test_items_that_tie_often_are_told_apart() -> None:
    votes = blind_votes(np.zeros((4, 4)), -1.5, n_votes=20_000)
    cautious = ((votes.left == 0) | (votes.right == 0)) & (np.random.default_rng(1).random(votes.left.size) < 0.4)
    mu = (
        DavidsonLearner()
        .fit(replace(votes, outcome=np.where(cautious, 2, votes.outcome)), seed=0)
        .probabilities(BLIND)[0]
    )
    assert mu[0, 1:, 2].min() > mu[1, 2, 2] + 0.25


def test_a_judge_that_knows_is_believed() -> None:
    generator, n_votes = np.random.default_rng(5), 3000
    margin = generator.normal(0.0, 1.5, n_votes)
    margins = np.zeros((n_votes, 2, 2, 1))
    margins[:, 0, 1, 0], margins[:, 1, 0, 0] = margin, -margin
    outcome = (generator.random(n_votes) > 1 / (1 + np.exp(-margin))).astype(np.int64)
    zero = np.zeros(n_votes, dtype=np.int64)
    x = Covariates(np.zeros((n_votes, 0)), margins)
    training = training_of(x, (np.arange(n_votes), zero, zero + 1, outcome), n_items=2, rule=RULES["binary"])
    model = DavidsonLearner().fit(training, seed=0)
    assert isinstance(model, DavidsonModel)
    assert model.utilities.judges[0] == pytest.approx(1.0, abs=0.12)
    np.testing.assert_allclose(model.probabilities(x)[zero, 0, 1], model.probabilities_at(x, zero, zero + 1)[zero])


def test_trees_find_what_lines_cannot() -> None:
    generator, n_votes = np.random.default_rng(11), 6000
    x = generator.uniform(-1, 1, (n_votes, 2))
    zero = np.zeros(n_votes, dtype=np.int64)
    chance = np.where(x[:, 0] * x[:, 1] > 0, 0.85, 0.15)
    outcome = (generator.random(n_votes) > chance).astype(np.int64)
    votes = np.arange(n_votes), zero, zero + 1, outcome
    training = training_of(Covariates(x), votes, n_items=2, rule=RULES["binary"])
    corners = Covariates(np.array([[0.6, 0.6], [-0.6, 0.6]]))
    mu = DavidsonLearner().fit(training, seed=0).probabilities(corners)[:, 0, 1, 0]
    np.testing.assert_allclose(mu, [0.85, 0.15], atol=0.1)
    flat = WITHOUT_TREES.fit(training, seed=0).probabilities(corners)[:, 0, 1, 0]
    np.testing.assert_allclose(flat, 0.5, atol=0.1)


def test_probabilities_of_one_pair_are_those_of_all(board: Training, fitted: DavidsonModel) -> None:
    mu = fitted.probabilities(board.x)
    np.testing.assert_allclose(mu.sum(axis=-1), 1.0, atol=1e-14)
    assert (mu > 0).all()
    at = fitted.probabilities_at(board.x.take(board.pattern), board.left, board.right)
    np.testing.assert_allclose(at, mu[board.pattern, board.left, board.right], atol=1e-13)


def test_a_refit_and_a_round_trip_are_equal_to_the_bit(board: Training, fitted: DavidsonModel) -> None:
    body = fitted.to_bytes()
    assert DavidsonLearner().fit(board, seed=1).to_bytes() == body
    again = load_model(body)
    assert again.to_bytes() == body
    np.testing.assert_array_equal(again.probabilities(board.x), fitted.probabilities(board.x))


def test_relabelling_items_relabels_mu(board: Training) -> None:
    order = np.array([3, 1, 4, 0, 2])
    moved = replace(board, left=order[board.left], right=order[board.right])
    mu, other = (WITHOUT_TREES.fit(each, seed=1).probabilities(board.x) for each in (board, moved))
    np.testing.assert_allclose(other[:, order[:, None], order], mu, atol=2e-4)


def test_swapping_sides_and_outcomes_swaps_mu() -> None:
    training = drawn(Cyclic(), 300, seed=4)
    swapped = replace(training, left=training.right, right=training.left, outcome=np.array([1, 0, 2])[training.outcome])
    mu, other = (WITHOUT_TREES.fit(each, seed=1).probabilities(training.x) for each in (training, swapped))
    np.testing.assert_allclose(other.transpose(0, 2, 1, 3)[..., [1, 0, 2]], mu, atol=2e-4)


def test_a_vote_of_weight_two_is_two_votes(board: Training) -> None:
    twice = replace(
        board, **{name: np.repeat(getattr(board, name), 2) for name in ("pattern", "left", "right", "outcome", "group")}
    )
    twice = replace(twice, weight=np.ones(twice.left.size))
    heavy = replace(board, weight=np.full(board.left.size, 2.0))
    mu, other = (DavidsonLearner().fit(each, seed=1).probabilities(board.x) for each in (twice, heavy))
    np.testing.assert_array_equal(other, mu)


def test_votes_alike_become_one_cell_and_groups_stay_together() -> None:
    n_votes = 5000
    generator = np.random.default_rng(2)
    left, group = generator.integers(3, size=n_votes), generator.integers(40, size=n_votes)
    votes = group, left, (left + 1) % 3, generator.integers(3, size=n_votes)
    training = training_of(Covariates(np.zeros((40, 0))), votes, n_items=3, rule=RULES["ternary"])
    cells = collapse(training, held_out(training.group, seed=0))
    assert len(cells) == 9
    assert cells.weight.sum() == n_votes
    lit = collapse(replace(training, x=Covariates(np.eye(40))), held_out(training.group, seed=0))
    held = np.unique(lit.pattern[lit.held > 0])
    assert held.size == 8
    assert not np.isin(lit.pattern[lit.kept > 0], held).any()


@settings(max_examples=60, deadline=None)
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
    model = DavidsonLearner().fit(training, seed=seed)
    mu = model.probabilities(training.x)
    assert isinstance(model, DavidsonModel)
    assert np.isfinite(mu).all()
    assert mu.min() > 1e-3
    np.testing.assert_allclose(mu.sum(axis=-1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(load_model(model.to_bytes()).probabilities(training.x), mu)


@pytest.mark.parametrize("outcome", [0, 1, 2])
def test_one_outcome_only_is_believed_more_with_more_votes(outcome: int) -> None:
    def chance(n_votes: int) -> float:
        zero = np.zeros(n_votes, dtype=np.int64)
        training = training_of(BLIND, (zero, zero, zero + 1, zero + outcome), n_items=2, rule=RULES["ternary"])
        return float(DavidsonLearner().fit(training, seed=0).probabilities(BLIND)[0, 0, 1, outcome])

    chances = [chance(n_votes) for n_votes in (0, 1, 5, 50, 1000)]
    assert chances[0] == pytest.approx(1 / 3)
    assert all(np.diff(chances) > 0)
    assert 0.9 < chances[-1] < 1


def test_an_item_without_votes_is_average() -> None:
    margins = np.subtract.outer([1.0, 0.0, -1.0], [1.0, 0.0, -1.0])
    votes = replace(blind_votes(margins, -1.0, n_votes=3000), n_items=4)
    d = log_odds(DavidsonLearner().fit(votes, seed=0))
    np.testing.assert_allclose(d[3, :3] - d[:3, 3], [-2.0, 0.0, 2.0], atol=0.3)


def test_missing_covariates_are_learnt_from() -> None:
    """Item 0 wins exactly where the covariate is missing: only the trees can see that."""
    generator, n_votes = np.random.default_rng(3), 1500
    missing = generator.random(n_votes) < 0.5
    x = Covariates(np.where(missing, np.nan, generator.normal(size=n_votes))[:, None])
    zero = np.zeros(n_votes, dtype=np.int64)
    outcome = np.where(generator.random(n_votes) < 0.1, missing, ~missing).astype(np.int64)
    votes = np.arange(n_votes), zero, zero + 1, outcome
    model = DavidsonLearner().fit(training_of(x, votes, n_items=2, rule=RULES["binary"]), seed=0)
    mu = model.probabilities(Covariates(np.array([[np.nan], [0.3]])))[:, 0, 1, 0]
    np.testing.assert_allclose(mu, [0.9, 0.1], atol=0.08)


def test_a_fit_that_lightgbm_refuses_leaves_the_constant_rates(caplog: pytest.LogCaptureFixture) -> None:
    training = scattered(RULES["ternary"], (40, 3, 2), seed=0)
    model = DavidsonLearner(Shape(leaves=1)).fit(training, seed=0)
    assert "constant rates" in caplog.text
    rates = (np.bincount(training.outcome, minlength=3) + 1) / 43
    np.testing.assert_allclose(model.probabilities_at(training.x, *pairs_of(training)), np.tile(rates, (20, 1)))
    again = load_model(model.to_bytes())
    np.testing.assert_array_equal(again.probabilities(training.x), model.probabilities(training.x))


def pairs_of(training: Training) -> tuple[Ints, Ints]:
    zero = np.zeros(len(training.x), dtype=np.int64)
    return zero, zero + 1


def test_learners_are_known_by_name() -> None:
    assert isinstance(learner("davidson"), DavidsonLearner)
    with pytest.raises(InvalidInput, match="davidson"):
        learner("oracle")


@pytest.mark.slow
@pytest.mark.parametrize(("n_rows", "bar"), [(1000, 0.060), (3000, 0.048)])
def test_mu_is_close_on_boards_with_cycles(n_rows: int, bar: float, capsys: pytest.CaptureFixture[str]) -> None:
    """About 2,800 and 8,500 votes; K = 5, three outcomes, five covariates; four boards."""
    boards = [Cyclic(world=world) for world in range(4)]
    errors = [error(DavidsonLearner().fit(drawn(board, n_rows, seed=1), seed=0), board) for board in boards]
    with capsys.disabled():
        print(f"\nn = {n_rows}: error of mu {np.mean(errors):.4f} ({', '.join(f'{each:.3f}' for each in errors)})")
    assert np.mean(errors) < bar


@pytest.mark.slow
def test_mu_is_close_on_a_battle_board() -> None:
    board = Arena(n_items=10)
    assert error(DavidsonLearner().fit(drawn(board, 3000, seed=0), seed=0), board) < 0.085
