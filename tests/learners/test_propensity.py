"""Propensities learned from covariates: nearer to the truth than frequencies, and never worse where x says nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import expit

from app.learners.propensity import LightGBMSelection, Seats
from app.learners.trees import Shape
from app.stats.debias import Clustering, Exposure, Labels, Target, one_step
from app.stats.debias.propensity import Unit
from app.stats.debias.selection import Contrast, Learned, Selection, SelectionModel, learned_propensities
from app.stats.gars import Borda, Graph
from app.stats.simulate import Cyclic
from app.stats.types import Floats, Ints, Sample, Votes
from tests.stats.debias_samples import TERNARY

FOLDS = 5
OFF = ~np.eye(3, dtype=np.bool_)
TASTE = np.array([1.6, 0.0, -1.6])
"""How much each of three items gains in strength, and in being shown, along the first covariate."""


@dataclass(frozen=True)
class Confounded:
    """A battle board on which items are shown where they do well."""

    x: Floats
    pi: Floats
    labels: Labels
    outcome: Ints

    @classmethod
    def drawn(cls, n_rows: int, *, seed: int, strength: float = 1.0) -> Confounded:
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1.0, 1.0, (n_rows, 2))
        pull = np.exp(strength * np.outer(x[:, 0], TASTE))
        pi = pull[:, :, None] * pull[:, None, :] * OFF
        pi /= pi.sum(axis=(1, 2), keepdims=True)
        pair = (np.cumsum(pi.reshape(n_rows, 9), axis=1) < rng.random((n_rows, 1))).sum(axis=1)
        left, right = np.divmod(np.minimum(pair, 7), 3)
        outcome = (np.cumsum(outcomes(x)[np.arange(n_rows), left, right], axis=1) < rng.random((n_rows, 1))).sum(axis=1)
        return cls(x, pi, Labels(np.arange(n_rows), left, right), outcome.clip(0, 2))

    @property
    def truth(self) -> Floats:
        """(n,) propensity of what was drawn."""
        return self.pi[self.labels.row, self.labels.left, self.labels.right]

    def selection(self) -> Selection:
        each = np.arange(len(self.x))
        return Selection(self.labels, Exposure.always(each.size, 3), each % FOLDS, each, each, self.x, FOLDS, "battle")

    def z(self, pi: Floats) -> Floats:
        """(3,) errors of Borda in standard errors, with a mu that knows half of what x says."""
        each = np.arange(len(self.x))
        place = (self.labels.row, self.labels.left, self.labels.right)
        votes = Votes(*place, self.outcome, np.ones(each.size), each, pi)
        sample = Sample(3, TERNARY, votes, each, each % FOLDS, each)
        found = one_step(
            sample,
            lambda _, patterns: (outcomes(self.x[patterns]) + outcomes(grid()).mean(axis=0)) / 2,
            {0: Target(Borda(), Graph.complete(3))},
            clustering=Clustering(),
        )[0].estimate
        z: Floats = (found.value - borda()) / found.standard_error
        return z


def outcomes(x: Floats) -> Floats:
    """(n, 3, 3, 3) chances of left, right, tie."""
    utility = np.outer(x[:, 0], TASTE) + np.array([0.3, 0.0, 0.3])
    left = 0.8 * expit(utility[:, :, None] - utility[:, None, :])
    return np.stack([left, 0.8 - left, np.full_like(left, 0.2)], axis=-1)


def grid() -> Floats:
    """Midpoints of the first covariate."""
    middle = (np.arange(2000) + 0.5) / 1000 - 1.0
    return np.stack([middle, middle], axis=1)


def borda() -> Floats:
    """The exact scores."""
    value: Floats = Borda().value(TERNARY.scores(outcomes(grid())), Graph.complete(3)).mean(axis=0)
    return value


def error(pi: Floats, truth: Floats) -> float:
    """Root mean squared error of log pi."""
    return float(np.sqrt(np.mean(np.log(pi / truth) ** 2)))


def learned(selection: Selection) -> Learned:
    return learned_propensities(selection, LightGBMSelection(), seed=1)


def test_a_policy_that_follows_x_is_learned_and_the_scores_are_covered() -> None:
    hits, missed, errors = 0, 0, []
    for seed in range(6):
        board = Confounded.drawn(1500, seed=seed)
        found = learned(board.selection())
        errors.append((error(found.pi, board.truth), error(found.frequency, board.truth)))
        hits += int((np.abs(board.z(found.pi)) < 1.96).sum())
        missed += int((np.abs(board.z(found.frequency)) >= 1.96).sum())
        assert found.helped.all()
    mine, frequencies = np.mean(errors, axis=0)
    assert mine < 0.45 * frequencies
    # 18 intervals: a true .93 has fewer hits than 13 with probability .002.
    assert hits >= 13
    assert missed >= 8


def test_context_boards_learn_the_chance_of_a_label_in_the_offer() -> None:
    board = Cyclic(n_items=4).draw(1000, seed=2)
    rng, votes = np.random.default_rng(2), board.votes
    each = np.arange(1000)
    selection = Selection(
        Labels(votes.row, votes.left, votes.right),
        *(Exposure.always(1000, 4), rng.integers(0, FOLDS, 1000), each, each, board.x, FOLDS, "context"),
    )
    found = learned(selection)
    assert error(found.pi, votes.propensity) < 0.65 * error(found.frequency, votes.propensity)
    # 12 ordered pairs, each with Σ 1/pi = n in expectation.
    assert (1 / found.pi).sum() / 12_000 == pytest.approx(1.0, abs=0.06)


def test_where_x_says_nothing_frequencies_stay_as_they_are() -> None:
    helped = 0
    for seed in range(4):
        board = Confounded.drawn(700, seed=seed, strength=0.0)
        found = learned(board.selection())
        kept = ~found.helped[board.labels.row % FOLDS]
        np.testing.assert_array_equal(found.pi[kept], found.frequency[kept])
        helped += int(found.helped.sum())
    # Two standard errors: of 20 folds, correlated as they are, six or more would be too many.
    assert helped < 6
    blind = learned(replace(board.selection(), x=np.zeros((700, 0))))
    assert not blind.helped.any()
    np.testing.assert_array_equal(blind.pi, blind.frequency)


def test_equal_boards_give_equal_propensities_and_missing_covariates_do_no_harm() -> None:
    board = Confounded.drawn(600, seed=4)
    x = np.where(np.random.default_rng(4).random(board.x.shape) < 0.3, np.nan, board.x)
    selection = replace(board.selection(), x=x)
    first = learned(selection)
    np.testing.assert_array_equal(first.pi, learned(selection).pi)
    assert ((first.pi > 0) & (first.pi <= 1)).all()


class Known:
    """A learner that is told the ratios."""

    def __init__(self, ratios: Floats) -> None:
        self.ratios = ratios
        self.seen: list[Contrast] = []

    def fit(self, contrast: Contrast, *, seed: int) -> SelectionModel | None:  # noqa: ARG002
        self.seen.append(contrast)
        return self

    def log_ratios(self, x: Floats) -> Floats:
        return np.tile(np.log(self.ratios), (len(x), 1, 1))


def late_joiner(n_rows: int, *, seed: int) -> Selection:
    """Item 2 comes after two thirds of the offers; then each of six ordered pairs is as likely as another."""
    rng = np.random.default_rng(seed)
    late = np.arange(n_rows) >= 2 * n_rows // 3
    pairs = np.argwhere(OFF)
    chosen = np.where(late[:, None], pairs[rng.integers(0, 6, n_rows)], [[0, 1], [1, 0]][0])
    swap = rng.random(n_rows) < 0.5
    left, right = np.where(swap, chosen[:, 1], chosen[:, 0]), np.where(swap, chosen[:, 0], chosen[:, 1])
    active = np.array([[True, True, False], [True, True, True]])
    each = np.arange(n_rows)
    exposure = Exposure.of_rows(late.astype(np.int64), active)
    return Selection(
        Labels(each, left, right),
        exposure,
        rng.permutation(each) % FOLDS,
        each,
        each,
        np.zeros((n_rows, 1)),
        FOLDS,
        "battle",
    )


def test_pairs_compete_within_the_active_set_of_their_offer() -> None:
    selection = late_joiner(3000, seed=5)
    found = learned_propensities(selection, Known(np.ones((3, 3))), seed=1)
    late = selection.exposure.group == 1
    # The frequency among all eligible offers lies between the chances before and after.
    np.testing.assert_allclose(found.pi[~late], 0.5, atol=0.05)
    np.testing.assert_allclose(found.pi[late], 1 / 6, atol=0.04)
    old = late & (selection.labels.left < 2) & (selection.labels.right < 2)
    assert (found.frequency[old] > 0.3).all()


@pytest.mark.parametrize("unit", ["battle", "context"])
def test_ratios_multiply_frequencies_and_on_battle_boards_pairs_share_the_offer(unit: Unit) -> None:
    board = Confounded.drawn(900, seed=6)
    ratios = np.where(OFF, np.arange(1.0, 10.0).reshape(3, 3), 1.0)
    found = learned_propensities(replace(board.selection(), unit=unit), Known(ratios), seed=1)
    raised = found.frequency * ratios[board.labels.left, board.labels.right]
    if unit == "context":
        np.testing.assert_allclose(found.pi, np.minimum(raised, 1.0), rtol=1e-9)
        return
    for fold in range(FOLDS):
        own = board.labels.row % FOLDS == fold
        cell = board.labels.left[own] * 3 + board.labels.right[own]
        _, first = np.unique(cell, return_index=True)
        assert first.size == 6
        assert found.pi[own][first].sum() == pytest.approx(1.0)
        shares = found.pi[own] / raised[own]
        np.testing.assert_allclose(shares, shares[0], rtol=1e-9)


def test_drawn_pairs_weigh_what_the_frequencies_expect_and_no_fold_sees_its_own_rows() -> None:
    selection, learner = late_joiner(3000, seed=7), Known(np.ones((3, 3)))
    learned_propensities(selection, learner, seed=1)
    for fold, contrast in enumerate(learner.seen):
        drawn = ~contrast.labelled
        assert not np.isin(contrast.pattern, np.flatnonzero(selection.fold == fold)).any()
        assert contrast.weight[drawn].sum() == pytest.approx(contrast.labelled.sum(), rel=1e-6)
        early = drawn & (contrast.pattern < 2000)
        assert np.stack([contrast.left[early], contrast.right[early]]).max() < 2
        newcomer = drawn & ((contrast.left == 2) | (contrast.right == 2))
        seen = contrast.labelled & ((contrast.left == 2) | (contrast.right == 2))
        assert contrast.weight[newcomer].sum() == pytest.approx(seen.sum(), rel=0.1)


def test_a_ratio_near_zero_is_kept_from_the_floor() -> None:
    board = Confounded.drawn(300, seed=8)
    ratios = np.where(OFF, 1.0, 1.0)
    ratios[0, 1] = 1e-6
    found = learned_propensities(board.selection(), Known(ratios), seed=1)
    pair = (board.labels.left == 0) & (board.labels.right == 1)
    np.testing.assert_allclose(found.pi[pair], 0.1 / 6)


@pytest.mark.parametrize("unit", ["battle", "context"])
def test_a_label_that_no_active_set_allows_keeps_its_frequency(unit: Unit) -> None:
    selection = replace(late_joiner(300, seed=9), unit=unit)
    labels = selection.labels
    odd = replace(selection, labels=replace(labels, left=np.where(labels.row == 0, 2, labels.left)))
    found = learned_propensities(odd, Known(np.full((3, 3), 0.7)), seed=1)
    at = int(np.flatnonzero(labels.row == 0)[0])
    assert found.pi[at] == found.frequency[at] > 0


@pytest.mark.parametrize("unit", ["battle", "context"])
@pytest.mark.parametrize("n_rows", [1, 2, 7])
def test_small_boards_have_finite_propensities(unit: Unit, n_rows: int) -> None:
    board = Confounded.drawn(n_rows, seed=10)
    pi = learned(replace(board.selection(), unit=unit)).pi
    assert ((pi > 0) & (pi <= 1)).all()


def test_without_a_label_there_is_nothing_to_learn() -> None:
    none = np.zeros(0, dtype=np.int64)
    selection = replace(Confounded.drawn(5, seed=11).selection(), labels=Labels(none, none, none))
    assert learned(selection).pi.size == 0


def test_scores_find_their_pairs() -> None:
    booster = np.array([[0, 2, -1, 0], [2, -1, 1, 1]])
    pattern = np.array([5, 3, 3, 5])
    seats = Seats.of(booster, pattern, 3)
    assert [row.tolist() for row in seats.rows] == [[5], [3, 5], [3, 5]]
    values = np.array([1.0, 10.0, 20.0, 100.0, 200.0])
    assert seats.scores(values).tolist() == [201.0, 100.0, 10.0, 21.0]
    assert seats.collect(np.array([1.0, 2.0, 4.0, 8.0])).tolist() == [9.0, 4.0, 8.0, 2.0, 1.0]


def test_a_pull_of_single_pairs_is_learned_where_labels_allow() -> None:
    rng = np.random.default_rng(12)
    x = rng.uniform(-1.0, 1.0, (3000, 1))
    # Which of (0, 1) and (1, 2) is shown depends on x, and so does the side: items alone cannot say that.
    pairs = np.array([[0, 1], [1, 0], [1, 2], [2, 1]])
    chance = np.exp(np.outer(x[:, 0], [1.5, -1.5, -1.5, 1.5]))
    chance /= chance.sum(axis=1, keepdims=True)
    drawn = (np.cumsum(chance, axis=1) < rng.random((3000, 1))).sum(axis=1)
    each = np.arange(3000)
    labels = Labels(each, pairs[drawn, 0], pairs[drawn, 1])
    found = learned(Selection(labels, Exposure.always(3000, 3), each % FOLDS, each, each, x, FOLDS, "battle"))
    truth = chance[each, drawn]
    assert error(found.pi, truth) < 0.35 * error(found.frequency, truth)


def test_no_round_is_no_model() -> None:
    board = Confounded.drawn(500, seed=13)
    found = learned_propensities(board.selection(), LightGBMSelection(Shape(rounds=0)), seed=1)
    assert not found.helped.any()
