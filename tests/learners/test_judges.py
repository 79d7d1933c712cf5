"""Judges as features of both learners: believed where they know, ignored where they do not, silent at times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from app.learners import DavidsonLearner, learner
from app.learners.davidson.learner import lowest
from app.learners.davidson.model import DavidsonModel
from app.stats.simulate.cyclic import Cyclic
from app.stats.types import Covariates, Floats, OutcomeModel, Training
from tests.learners.trainings import RULES, drawn, training_of

LEARNERS = ("davidson", "lightgbm")
CAP = np.log(0.98 / 0.02)


def seen(truth: Floats, noise: float, *, seed: int) -> Floats:
    """(u, K, K) margins of a judge that knows the log-odds (u, K, K) up to noise, antisymmetric."""
    upper = np.triu((truth - truth.transpose(0, 2, 1)) / 2, 1)
    upper += np.triu(np.random.default_rng(seed).normal(0.0, noise, truth.shape), 1)
    return np.clip(upper - upper.transpose(0, 2, 1), -CAP, CAP)


def judged(n_rows: int, noise: tuple[float, ...], *, seed: int, silent: float = 0.0) -> tuple[Training, Floats]:
    """A cyclic board with one judge to each noise, silent on a share of the pairs; and its true mu."""
    board = Cyclic()
    training = drawn(board, n_rows, seed=seed)
    mu = board.probabilities(training.x.x)
    truth = np.log(mu[..., 0] / mu[..., 1])
    margins = np.stack([seen(truth, each, seed=judge) for judge, each in enumerate(noise)], axis=-1)
    hushed = np.triu(np.random.default_rng(seed + 1).random(truth.shape) < silent, 1)
    margins[hushed | hushed.transpose(0, 2, 1)] = np.nan
    return replace(training, x=Covariates(training.x.x, margins.astype(np.float32))), mu


def rmse(model: OutcomeModel, x: Covariates, mu: Floats) -> float:
    """Root mean squared error over contexts and ordered pairs."""
    pairs = ~np.eye(mu.shape[1], dtype=bool)
    return float(np.sqrt(((model.probabilities(x) - mu)[:, pairs] ** 2).mean()))


def errors(name: str, training: Training, mu: Floats) -> tuple[float, float]:
    """With the judges, and without them."""
    blind = replace(training, x=Covariates(training.x.x))
    return tuple(rmse(learner(name).fit(each, seed=0), each.x, mu) for each in (training, blind))


@pytest.mark.parametrize("name", LEARNERS)
def test_a_judge_that_knows_lowers_the_error(name: str) -> None:
    found, blind = errors(name, *judged(500, (0.1,), seed=0))
    assert found < 0.8 * blind


@pytest.mark.parametrize("name", LEARNERS)
def test_error_falls_as_the_judge_improves(name: str) -> None:
    found = [errors(name, *judged(500, (noise,), seed=0))[0] for noise in (0.0, 0.4, 3.0)]
    assert found[0] < found[1] < found[2]


@pytest.mark.parametrize(("name", "bar"), [("davidson", 1.05), ("lightgbm", 1.10)])
def test_a_useless_judge_costs_little(name: str, bar: float) -> None:
    training, mu = judged(800, (0.0,), seed=2)
    margins = seen(np.zeros(mu.shape[:3]), 1.5, seed=3)[..., None]
    found, blind = errors(name, replace(training, x=Covariates(training.x.x, margins)), mu)
    assert found < bar * blind


@pytest.mark.parametrize("name", LEARNERS)
def test_a_judge_that_is_silent_at_times_still_helps(name: str) -> None:
    training, mu = judged(800, (0.0,), seed=4, silent=0.1)
    assert training.x.margins is not None
    found, blind = errors(name, training, mu)
    assert found < 0.95 * blind
    model = learner(name).fit(training, seed=0)
    chances = model.probabilities_at(training.x.take(training.pattern), training.left, training.right)
    every = model.probabilities(training.x)[training.pattern, training.left, training.right]
    np.testing.assert_allclose(chances, every, atol=1e-6)
    assert np.isfinite(chances).all()


@pytest.mark.parametrize("name", LEARNERS)
def test_the_better_of_several_judges_is_believed(name: str) -> None:
    training, mu = judged(500, (3.0, 0.2, 3.0), seed=5)
    assert training.x.margins is not None
    alone = replace(training, x=Covariates(training.x.x, training.x.margins[..., 1:2]))
    found, only = (rmse(learner(name).fit(each, seed=0), each.x, mu) for each in (training, alone))
    assert found < 1.1 * only


@pytest.mark.parametrize("name", LEARNERS)
def test_judges_that_never_speak_are_no_judges(name: str) -> None:
    training, mu = judged(300, (0.5, 0.5), seed=6, silent=1.1)
    found, blind = errors(name, training, mu)
    assert found == pytest.approx(blind, rel=1e-4)
    nobody = replace(training, x=Covariates(training.x.x, np.zeros((*mu.shape[:3], 0), dtype=np.float32)))
    assert errors(name, nobody, mu)[0] == pytest.approx(blind, rel=1e-4)


def test_davidson_turns_with_the_order() -> None:
    """With both orders equally good, chances of the reversed order are those of the order with outcomes exchanged."""
    training, _ = judged(300, (0.0, 3.0), seed=7, silent=0.1)
    model = DavidsonLearner().fit(training, seed=0)
    assert isinstance(model, DavidsonModel)
    level = replace(model, utilities=replace(model.utilities, position=0.0)).probabilities(training.x)
    np.testing.assert_allclose(level, level.transpose(0, 2, 1, 3)[..., [1, 0, 2]], atol=1e-5)
    assert 0.3 < model.utilities.judges[0] < 1.1
    assert model.utilities.judges[1] < model.utilities.judges[0] / 2


def test_a_judge_is_credited_with_no_more_than_it_adds() -> None:
    """Most of what a noisy judge seems to know, utilities and pair effects know better."""
    training, mu = judged(2000, (0.5,), seed=0)
    found = DavidsonLearner().fit(training, seed=0)
    blind = replace(training, x=Covariates(training.x.x))
    assert isinstance(found, DavidsonModel)
    assert found.utilities.judges[0] < 0.4
    assert rmse(found, training.x, mu) < rmse(DavidsonLearner().fit(blind, seed=0), blind.x, mu)


@pytest.mark.parametrize(
    ("losses", "place"),
    [
        ((1.0, 0.0, 1.0), 0.5),
        ((3.0, 1.0, 1.0), 0.75),
        ((0.0, 2.0, 5.0), 0.0),
        ((1.0, 2.0, 0.5), 1.0),
        ((0.0,) * 3, 0.0),
    ],
)
def test_the_share_is_where_a_parabola_is_lowest(losses: tuple[float, float, float], place: float) -> None:
    assert lowest(np.array(losses)) == pytest.approx(place)


def test_silence_is_not_a_tie_for_trees() -> None:
    """The left item wins where the judge keeps silent, the right one where it sees a tie."""
    n_votes = 1500
    silent = np.random.default_rng(8).random(n_votes) < 0.5
    margins = np.zeros((n_votes, 2, 2, 1))
    margins[silent] = np.nan
    zero = np.zeros(n_votes, dtype=np.int64)
    outcome = np.where(np.random.default_rng(9).random(n_votes) < 0.1, silent, ~silent).astype(np.int64)
    x = Covariates(np.zeros((n_votes, 0)), margins)
    training = training_of(x, (np.arange(n_votes), zero, zero + 1, outcome), n_items=2, rule=RULES["binary"])
    mu = learner("lightgbm").fit(training, seed=0).probabilities(x)[:, 0, 1, 0]
    np.testing.assert_allclose(mu, np.where(silent, 0.9, 0.1), atol=0.05)


def test_a_certain_judge_alone_decides_as_often_as_it_was_right() -> None:
    """Hard verdicts are margins of ±3.9; a judge that is right seven times in ten is worth far less."""
    generator, n_votes = np.random.default_rng(10), 4000
    margin = np.where(generator.random(n_votes) < 0.5, CAP, -CAP)
    margins = np.zeros((n_votes, 2, 2, 1))
    margins[:, 0, 1, 0], margins[:, 1, 0, 0] = margin, -margin
    right = generator.random(n_votes) < 0.7
    outcome = np.where(right, margin < 0, margin > 0).astype(np.int64)
    zero = np.zeros(n_votes, dtype=np.int64)
    x = Covariates(np.zeros((n_votes, 0)), margins)
    training = training_of(x, (np.arange(n_votes), zero, zero + 1, outcome), n_items=2, rule=RULES["binary"])
    mu = DavidsonLearner().fit(training, seed=0).probabilities(x)[:, 0, 1, 0]
    np.testing.assert_allclose(mu, expit(np.sign(margin) * np.log(0.7 / 0.3)), atol=0.03)
