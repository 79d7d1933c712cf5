"""Pairs drawn, leased, leased again, skipped, answered or never: intervals cover and the balance check is quiet."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from app.domain.boards import BoardConfig
from app.services.refit.balance import balance_of
from app.services.refit.crew.ports import IN_TURN
from app.services.refit.fitting import fit_folds
from app.services.refit.frame import frame_of
from app.services.refit.inputs import OPEN, ContextTable, DrawTable, Inputs, OfferTable, Roster, VoteTable
from app.services.refit.population import Unit
from app.stats.debias.folds import mix
from app.stats.debias.scores import estimate
from app.stats.gars import Borda, Graph
from app.stats.inference import bands
from app.stats.types import Covariates, Floats, Ints

K = 3
PAIRS = K * (K - 1)
LEFT, RIGHT = np.nonzero(~np.eye(K, dtype=np.bool_))
ROWS = 1500
RUNS = 60
NEVER = np.linspace(0.0, 0.75, PAIRS)
"""Share of each ordered pair's draws that nobody ever answers: its annotators skip."""
DRAWN = np.array([0.06, 0.32])
"""Propensity of every pair by the kind of the context, which no model is told: votes alone tell of the second kind."""
HOUR = 3_600_000_000
DAY = 24 * HOUR


def chance(kind: Ints, pair: Ints) -> Floats:
    """That the first item wins; the kinds of context disagree."""
    edge = 0.2 + (RIGHT - LEFT)[pair] * np.where(kind == 1, 1.3, -0.7)
    wins: Floats = 1 / (1 + np.exp(-edge))
    return wins


class Leases(NamedTuple):
    """(d,) draws: when each is answered (µs, `OPEN` if not by the day's end) and how often it was leased in vain."""

    answered: Ints
    lapsed: Ints


def lease(made: Ints, pair: Ints, rng: np.random.Generator) -> Leases:
    """Leases of an hour, every second of them in vain; the next one begins half an hour later or so."""
    tries = rng.geometric(0.5, made.size)
    pause = rng.exponential(0.5 * HOUR, (made.size, tries.max()))
    waited = np.where(np.arange(tries.max()) < tries[:, None], pause, 0).sum(axis=1)
    answered = made + (waited + (tries - 1) * HOUR + rng.random(made.size) * HOUR).astype(np.int64)
    skipped = rng.random(made.size) < NEVER[pair]
    return Leases(np.where(skipped | (answered > DAY), OPEN, answered), np.where(skipped, 0, tries - 1))


def simulated(seed: int) -> Inputs:
    """A day of draws of independent pairs, seen at its end."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 2, ROWS)
    made = np.sort(rng.integers(0, DAY, ROWS))
    row, pair = np.nonzero(rng.random((ROWS, PAIRS)) < DRAWN[kind][:, None])
    answered, lapsed = lease(made[row], pair, rng)
    heard = np.flatnonzero(answered < OPEN)
    size, at, ids = heard.size, row[heard], np.arange(1, ROWS + 1)
    wins = rng.random(size) < chance(kind[at], pair[heard])
    again = np.repeat(np.arange(row.size), lapsed)
    every = np.concatenate([again, np.arange(row.size)])
    return Inputs(
        votes=VoteTable(
            *(np.arange(1, size + 1), ids[at], ids[at], LEFT[pair[heard]], RIGHT[pair[heard]]),
            outcome=np.where(wins, 0, 1),
            voter=np.zeros(size, dtype=np.int64),
            propensity=DRAWN[kind[at]],
            created=answered[heard],
            reason=np.full(size, -1),
        ),
        reasons=(),
        contexts=ContextTable(
            *(np.arange(ROWS + 1), mix(np.arange(ROWS + 1)).astype(np.int64)),
            *np.zeros((2, ROWS + 1), dtype=np.int64),
            features=[{}],
        ),
        offers=OfferTable(ids, ids, mix(ids, ids).astype(np.int64), made, np.ones(ROWS, dtype=np.bool_)),
        roster=Roster(
            *(np.arange(K), ("a", "b", "c"), np.ones(K, dtype=np.bool_), np.arange(K)),
            *(np.zeros(K, dtype=np.int64), np.full(K, OPEN), np.full(K, 0.5), np.zeros(K)),
        ),
        draws=DrawTable(
            *(ids[row[every]], LEFT[pair[every]], RIGHT[pair[every]]),
            answered=np.concatenate([np.full(again.size, OPEN), answered]),
        ),
    )


class Seen(NamedTuple):
    """Whether the simultaneous intervals cover the truth, the errors, and whether the propensities add up."""

    covers: bool
    error: Floats
    balanced: bool


def truth() -> Floats:
    """Borda scores of the preferences averaged over both kinds of context."""
    p = np.full((1, K, K), 0.5)
    pair = np.arange(PAIRS)
    p[0, LEFT, RIGHT] = (chance(np.zeros_like(pair), pair) + chance(np.ones_like(pair), pair)) / 2
    return Borda().value(p, Graph.complete(K))[0]


def seen(inputs: Inputs, unit: Unit) -> Seen:
    frame = frame_of(inputs, BoardConfig(unit=unit, outcomes="binary"))
    sample, known = frame.view(), Covariates(np.zeros((1, 0)))
    with threadpool_limits(1):
        fitted = fit_folds(sample, known, ("davidson",), folds=frame.n_folds, crew=IN_TURN, told=lambda _: None)
    models = fitted.models["davidson"]
    found = estimate(sample, models.mu, [Borda()], clustering=frame.clustering)["borda"].every.estimate
    band = bands(found, kind="simultaneous", level=0.95)
    balance = balance_of(frame, sample)
    assert balance is not None
    inside = (band.lower <= truth()) & (truth() <= band.upper)
    return Seen(bool(inside.all()), found.value - truth(), balance.consistent)


@pytest.mark.slow
def test_intervals_cover_although_answers_are_out_and_do_not_without_the_rates() -> None:
    boards = [simulated(seed) for seed in range(RUNS)]
    right = [seen(each, "battle") for each in boards]
    ignored = [seen(replace(each, draws=None), "battle") for each in boards]
    # With a thousand votes .90, measured on 260 boards; three binomial standard errors below that.
    assert np.mean([run.covers for run in right]) >= 0.9 - 3 * (0.9 * 0.1 / RUNS) ** 0.5
    assert np.mean([run.covers for run in ignored]) <= 0.2
    errors = np.array([run.error for run in right])
    assert (np.abs(errors.mean(axis=0)) < 4 * errors.std(axis=0) / RUNS**0.5).all()
    assert np.mean([run.balanced for run in right]) >= 0.9
    assert not any(run.balanced for run in ignored)


def test_both_units_see_the_same_where_each_context_is_offered_once() -> None:
    inputs = simulated(0)
    battle, context = seen(inputs, "battle"), seen(inputs, "context")
    np.testing.assert_allclose(battle.error, context.error, atol=0.02)
    assert battle.balanced
    assert context.balanced
