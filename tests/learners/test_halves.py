"""Fits in two halves, perhaps in two processes: together they are the whole, to the bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.learners import learner, load_model
from app.learners.constant import ConstantRates
from app.stats.simulate.cyclic import Cyclic
from app.stats.types import Covariates, Training
from tests.learners.trainings import RULES, drawn, scattered


def judged() -> Training:
    """A board with a judge."""
    training = drawn(Cyclic(), 400, seed=1)
    size = training.n_items
    margins = np.triu(np.random.default_rng(2).normal(size=(len(training.x), size, size)), 1)
    return replace(training, x=Covariates(training.x.x, (margins - margins.transpose(0, 2, 1))[..., None]))


def overflowing() -> Training:
    """Covariates that no scale can be had of."""
    training = drawn(Cyclic(), 400, seed=1)
    return replace(training, x=Covariates(training.x.x * 1e308))


@pytest.mark.parametrize("name", ["davidson", "lightgbm"])
@pytest.mark.parametrize(
    "training",
    [judged(), scattered(RULES["binary"], (4, 300, 2), seed=3), overflowing()],
    ids=["judged", "no free categories", "overflowing"],
)
def test_the_halves_are_the_whole(name: str, training: Training) -> None:
    whole = learner(name).fit(training, seed=5).to_bytes()
    half = learner(name).begin(training, seed=5).to_bytes()
    assert learner(name).finish(training, load_model(half), seed=5).to_bytes() == whole


def test_what_could_not_be_begun_is_not_finished() -> None:
    training = drawn(Cyclic(), 400, seed=1)
    begun = ConstantRates.of(training)
    assert learner("davidson").finish(training, begun, seed=5) is begun


def test_the_first_half_knows_of_no_levels() -> None:
    training = drawn(Cyclic(), 400, seed=1)
    half, whole = learner("davidson").begin(training, seed=5), learner("davidson").fit(training, seed=5)
    assert half.to_bytes() != whole.to_bytes()
