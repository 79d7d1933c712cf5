"""What the parts of a large board ask of its models, found once: the same numbers, without asking again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from app.learners.trees import Forest
from app.services.refit import parts
from app.services.refit.crew.ports import IN_TURN
from app.services.refit.fit import refit
from app.services.refit.fitting import Fitted, FoldModels, fit_folds
from app.services.refit.foreseen import Foreseen
from app.stats.debias import thinning
from app.stats.types import Bools, Covariates, Floats, Ints, Rule, Sample, Votes
from tests.benchmarks.boards import Size

K, FOLDS, ROWS = 4, 2, 400


@dataclass(frozen=True)
class Told:
    """A board, its models, and the rows that were foreseen."""

    sample: Sample
    fitted: Fitted
    rows: Bools

    @property
    def models(self) -> FoldModels:
        return self.fitted.models[self.learner]

    @property
    def learner(self) -> str:
        return next(iter(self.fitted.models))

    @property
    def mu(self) -> Foreseen:
        return Foreseen(self.models, self.sample, self.fitted.chances[self.learner], self.rows)

    def patterns(self, fold: int, *, known: bool) -> Ints:
        """Those of the fold's rows that were foreseen, or of others."""
        found: Ints = self.sample.pattern[(self.sample.fold == fold) & (self.rows == known)]
        return found


@pytest.fixture(scope="module", params=["davidson", "lightgbm"])
def told(request: pytest.FixtureRequest) -> Told:
    rng, each = np.random.default_rng(5), np.arange(ROWS)
    x = rng.normal(size=(ROWS, 2))
    left = rng.integers(K, size=ROWS)
    right = (left + rng.integers(1, K, size=ROWS)) % K
    outcome = (rng.random(ROWS) > 1 / (1 + np.exp(-(left - right) * np.sign(x[:, 0])))).astype(np.int64)
    one = np.ones(ROWS)
    rule = Rule(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    sample = Sample(K, rule, Votes(each, left, right, outcome, one, each, one / 12), each, each % FOLDS, each)
    fitted = fit_folds(sample, Covariates(x), [request.param], folds=FOLDS, crew=IN_TURN, told=lambda _: None)
    return Told(sample, fitted, rng.random(ROWS) < 0.5)


def test_foreseen_patterns_have_the_models_chances(told: Told) -> None:
    for fold in range(FOLDS):
        for known in (True, False):
            patterns = told.patterns(fold, known=known)[5:12]
            np.testing.assert_allclose(told.mu(fold, patterns), told.models(fold, patterns), rtol=0, atol=1e-12)


def test_pairs_voted_on_have_the_chances_that_were_found(told: Told) -> None:
    votes, mu = told.sample.votes, told.mu
    own = np.flatnonzero(told.sample.fold == 1)[::-1]
    found = mu.at(1, own, votes.left[own], votes.right[own])
    np.testing.assert_array_equal(found, told.fitted.chances[told.learner][own])
    np.testing.assert_allclose(found, told.models.at(1, own, votes.left[own], votes.right[own]), rtol=0, atol=1e-12)
    left, right = votes.left[own[:7]], votes.right[own[:7]]
    third = np.array([min({*range(K)} - {*pair}) for pair in zip(left.tolist(), right.tolist(), strict=True)])
    for pair in ((right, left), (third, right), (left, third)):
        np.testing.assert_array_equal(mu.at(1, own[:7], *pair), told.models.at(1, own[:7], *pair))


def test_trees_are_asked_once(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    scores = Forest.all_scores

    def counted(self: Forest, x: Floats) -> Floats:
        asked.append(len(x))
        return scores(self, x)

    monkeypatch.setattr(Forest, "all_scores", counted)
    mu, patterns = told.mu, told.patterns(0, known=True)
    for start in range(0, patterns.size, 10):
        mu(0, patterns[start : start + 10])
    # The items of the other learner have no trees of their own.
    assert asked == ([patterns.size] * 2 if told.learner == "davidson" else [])


def test_a_large_board_has_the_scores_of_models_that_know_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "LEAST_ROWS", 200)
    monkeypatch.setattr(thinning, "PAIRS", 0)
    size = Size(600, 5, 2)
    found = refit(size.inputs(), size.config)
    assert any(table.rows_used == 200 for table in found.tables)
    monkeypatch.setattr(parts, "Foreseen", lambda models, *_: models)
    plain = refit(size.inputs(), size.config)
    assert found.summary["votes_to_flip"] == plain.summary["votes_to_flip"]
    for one, other in zip(found.tables, plain.tables, strict=True):
        np.testing.assert_allclose(one.value, other.value, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.payoffs.share, plain.payoffs.share, rtol=0, atol=1e-9)
