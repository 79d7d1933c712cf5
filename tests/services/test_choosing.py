"""Which learner `auto` takes, and that processes change nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from app.services.refit import fitting
from app.services.refit.choosing import AUTO, choose
from app.services.refit.crew.ports import IN_TURN
from app.services.refit.crew.processes import Processes
from app.stats.types import Covariates, Rule, Sample, Votes


def sample_of(margin: Callable[..., Any], n_votes: int) -> tuple[Sample, Covariates]:
    """Votes on two items, D a function of two covariates."""
    generator = np.random.default_rng(4)
    x = generator.uniform(-1, 1, (n_votes, 2))
    zero, every = np.zeros(n_votes, dtype=np.int64), np.arange(n_votes)
    outcome = (generator.random(n_votes) > 1 / (1 + np.exp(-margin(*x.T)))).astype(np.int64)
    votes = Votes(every, zero, zero + 1, outcome, np.ones(n_votes), every, np.full(n_votes, 0.5))
    rule = Rule(np.array([1.0, 0.0]), np.array([0.0, 1.0]))
    return Sample(2, rule, votes, every, every % 5, every), Covariates(x)


def test_auto_takes_what_predicts_best() -> None:
    board, told = sample_of(lambda a, b: 2 * a - b, 900), []
    found = choose(*board, "auto", folds=5, crew=IN_TURN, told=told.append)
    assert found.chosen == "davidson"
    np.testing.assert_allclose(told, np.linspace(0.05, 1, 20))
    alone = [choose(*board, each, folds=5, crew=IN_TURN, told=lambda _: None).log_losses for each in AUTO]
    assert found.log_losses == alone[0] | alone[1]
    stripes = sample_of(lambda a, b: 6 * np.sign(np.sin(6 * a) * b), 900)
    assert choose(*stripes, "auto", folds=5, crew=IN_TURN, told=lambda _: None).chosen == "lightgbm"


def test_folds_fitted_side_by_side_are_those_fitted_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    board = sample_of(lambda a, b: 2 * a - b, 300)
    expected = choose(*board, "auto", folds=2, crew=IN_TURN, told=lambda _: None)
    monkeypatch.setattr(fitting, "WORTH_A_PROCESS", 0)
    found = choose(*board, "auto", folds=2, crew=Processes(2), told=lambda _: None)
    assert found.log_losses == expected.log_losses
    assert [m.to_bytes() for m in found.models.models] == [m.to_bytes() for m in expected.models.models]
