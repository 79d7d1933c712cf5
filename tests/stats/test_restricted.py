"""The restricted Bradley-Terry estimator: its slow twin, orthogonality, coverage with ties, and what it cannot tell."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy.special import expit, logit

from app.stats.debias import Clustering, CrossFit, OneStep, Policy, Target, one_step, pair_frequencies, restricted
from app.stats.errors import NotIdentified
from app.stats.gars import BradleyTerry, Graph
from app.stats.inference import bands
from app.stats.simulate import Cyclic, Strength, sobol_covariates
from app.stats.types import Floats, Ints, Rule, Sample, Votes
from tests.stats.debias_samples import TERNARY, random_case

CLUSTERING = Clustering(unit="context")


def _slow(sample: Sample, mu: CrossFit, policy: Policy) -> Floats:
    """psi (n, K), pair by pair; every ordered pair has votes."""
    size = sample.n_items
    basis = np.zeros((size + 1, size))
    basis[: size - 1, : size - 1], basis[size - 1, : size - 1], basis[size, size - 1] = np.eye(size - 1), -1.0, 1.0
    pairs = list(permutations(range(size), 2))
    design = np.zeros((len(pairs), size + 1))
    for at, (j, k) in enumerate(pairs):
        design[at, [j, k, size]] = 1.0, -1.0, 1.0
    psi = np.zeros((sample.n_rows, size))
    for i in range(sample.n_rows):
        fold, pattern = int(sample.fold[i]), sample.pattern[i : i + 1]
        chances = mu(fold, pattern)[0]
        pi = np.broadcast_to(policy(fold, pattern), (1, size, size))[0]
        left, decided = chances[:, :, 0], chances[:, :, 0] + chances[:, :, 1]
        odds = np.array([logit(left[pair] / decided[pair]) for pair in pairs])
        found = basis @ np.linalg.lstsq(design @ basis, odds)[0]
        mean = expit(design @ found)
        weight = np.array([pi[pair] * decided[pair] for pair in pairs]) * mean * (1 - mean)
        inverse = basis @ np.linalg.inv(basis.T @ design.T @ np.diag(weight) @ design @ basis) @ basis.T
        step = np.zeros(size + 1)
        for v in np.flatnonzero(sample.votes.row == i):
            pair = int(sample.votes.left[v]), int(sample.votes.right[v])
            if sample.votes.outcome[v] < 2:
                at = pairs.index(pair)
                ratio = sample.votes.weight[v] * pi[pair] / sample.votes.propensity[v]
                step += ratio * ((sample.votes.outcome[v] == 0) - mean[at]) * design[at]
        psi[i] = (found + inverse @ step)[:size]
    return psi


def test_equals_the_slow_twin() -> None:
    case = random_case(np.random.default_rng(0), n_items=4, n_rows=60)
    policy = pair_frequencies(case.sample, unit="context")
    fast = restricted(case.sample, case.mu, policy, clustering=Clustering("context", "context", fixed=True))
    psi = _slow(case.sample, case.mu, policy)
    np.testing.assert_allclose(fast.estimate.value, psi.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(fast.estimate.covariance, np.cov(psi.T, bias=True) / 60, atol=1e-12)


def _expectation(error: float, *, policy: Floats, ties_known: bool) -> Floats:
    """E psi - theta at one context, its votes weighed by their exact chances, nuisances off by `error`."""
    rng = np.random.default_rng(3)
    strength, position, drawn = rng.normal(size=4), 0.4, rng.uniform(0.1, 0.6, (4, 4))
    strength -= strength.mean()
    tie = rng.uniform(0.2, 0.6, (4, 4))
    shift = rng.normal(size=5) * error
    shift[:4] -= shift[:4].mean()

    def chances(strength: Floats, position: float, tie: Floats) -> Floats:
        left = expit(strength[:, None] - strength + position)
        return np.stack([left * (1 - tie), (1 - left) * (1 - tie), tie], axis=-1)

    true = chances(strength, position, tie)
    left, right, outcome = (each.ravel() for each in np.indices((4, 4, 3)))
    chosen = left != right
    left, right, outcome = left[chosen], right[chosen], outcome[chosen]
    pi = drawn[left, right]
    votes = Votes(np.zeros_like(left), left, right, outcome, pi * true[left, right, outcome], np.arange(left.size), pi)
    none = np.zeros(1, dtype=np.int64)
    sample = Sample(4, TERNARY, votes, none, none, none)
    guess = chances(strength + shift[:4], position + shift[4], (tie + error / 5) if ties_known else tie * 0)
    result = restricted(sample, lambda _f, _p: guess[None], lambda _f, _p: policy, clustering=CLUSTERING)
    error_left: Floats = result.estimate.value - strength
    return error_left


@pytest.mark.parametrize("policy", [np.full((4, 4), 0.2), np.random.default_rng(5).uniform(0.05, 0.5, (4, 4))])
def test_first_order_errors_of_the_model_cancel(policy: Floats) -> None:
    """Whatever policy stands in the information; a tie taken for information leaves the error as it was."""
    sizes = [np.abs(_expectation(each, policy=policy, ties_known=True)).max() for each in (0.1, 0.05, 0.025)]
    assert sizes[0] < 0.1
    assert min(sizes[0] / sizes[1], sizes[1] / sizes[2]) > 3.5
    control = [np.abs(_expectation(each, policy=policy, ties_known=False)).max() for each in (0.05, 0.025)]
    assert control[0] / control[1] < 2.3


def _shrunken(generator: Cyclic, x: Floats, factor: float, *, ties: bool) -> CrossFit:
    """Log-odds that are too small by a factor; without `ties`, every vote taken for decisive."""

    def mu(_fold: int, patterns: Ints) -> Floats:
        true = generator.probabilities(x[patterns])
        decided = true[..., :2].sum(axis=-1)
        left = expit(factor * logit(true[..., 0] / decided))
        shares = np.stack([left, 1.0 - left, np.zeros_like(left)], axis=-1)
        return shares if not ties else shares * decided[..., None] + true * [0.0, 0.0, 1.0]

    return mu


def _simulated(generator: Cyclic, *, seed: int, n_rows: int) -> tuple[Floats, Sample]:
    drawn = generator.draw(n_rows, seed=seed)
    row = np.arange(n_rows)
    return drawn.x, Sample(generator.n_items, generator.rule, drawn.votes, row, row % 5, row)


def _covers(result: OneStep, true: Floats) -> bool:
    band = bands(result.estimate, kind="simultaneous", level=0.95)
    return bool(((band.lower <= true) & (true <= band.upper)).all())


def test_intervals_cover_with_ties_and_not_without_their_share() -> None:
    """The models' log-odds are half of the true ones; the control takes every vote for a decisive one."""
    generator = Cyclic(strength=Strength(cycle=0.0))
    utilities = generator.preferences.utilities(sobol_covariates(generator, power=12))
    true = (utilities - utilities.mean(axis=1, keepdims=True)).mean(axis=0)
    hits = np.zeros(2)
    for seed in range(100):
        x, sample = _simulated(generator, seed=seed, n_rows=1000)
        policy = pair_frequencies(sample, unit="context")
        for at, ties in enumerate((True, False)):
            mu = _shrunken(generator, x, 0.5, ties=ties)
            hits[at] += _covers(restricted(sample, mu, policy, clustering=CLUSTERING), true)
    assert hits[0] >= 86
    assert hits[1] < 80


def test_believing_the_model_narrows_intervals_when_it_holds() -> None:
    """Without ties the variance is 5 to 16% below the projection's."""
    generator = Cyclic(strength=Strength(cycle=0.0), outcomes="binary")
    traces = np.zeros(2)
    target = Target(BradleyTerry(), Graph.complete(generator.n_items))
    for seed in range(5):
        x, sample = _simulated(generator, seed=seed, n_rows=1000)

        def mu(_fold: int, patterns: Ints, x: Floats = x) -> Floats:
            return generator.probabilities(x[patterns])

        def policy(_fold: int, patterns: Ints, x: Floats = x) -> Floats:
            return generator.propensities(x[patterns])

        free = one_step(sample, mu, {0: target}, clustering=CLUSTERING)[0]
        bound = restricted(sample, mu, policy, clustering=CLUSTERING)
        traces += [np.trace(bound.estimate.covariance), np.trace(free.estimate.covariance)]
    assert 0.84 < traces[0] / traces[1] < 0.95


def test_items_apart_have_no_score_and_no_say() -> None:
    case = random_case(np.random.default_rng(1), n_items=5, n_rows=80)
    votes, ranked = case.sample.votes, [0, 1, 3]
    first, second = np.isin(votes.left, ranked), np.isin(votes.right, ranked)
    sample = replace(case.sample, votes=votes.take(first == second))
    policy = pair_frequencies(sample, unit="context")
    result = restricted(sample, case.mu, policy, clustering=CLUSTERING)
    assert result.items.tolist() == ranked
    assert abs(result.estimate.value.sum()) < 1e-12
    assert (np.diagonal(result.estimate.covariance) > 0).all()
    alone = restricted(replace(sample, votes=votes.take(first & second)), case.mu, policy, clustering=CLUSTERING)
    np.testing.assert_allclose(result.estimate.value, alone.estimate.value, atol=1e-12)


def test_graded_verdicts_count_by_their_side() -> None:
    """Much better, better, equal, worse: as if the first two were one category."""
    case = random_case(np.random.default_rng(2), n_items=3, n_rows=50)
    policy = pair_frequencies(case.sample, unit="context")
    plain = restricted(case.sample, case.mu, policy, clustering=CLUSTERING)
    graded = Rule(np.array([1.0, 0.75, 0.25, 0.5]), np.array([0.0, 0.25, 0.75, 0.5]))
    outcome = np.array([0, 2, 3])[case.sample.votes.outcome]
    sometimes = (outcome == 0) & (np.arange(outcome.size) % 3 == 0)
    votes = replace(case.sample.votes, outcome=np.where(sometimes, 1, outcome))

    def mu(fold: int, patterns: Ints) -> Floats:
        left, right, tie = np.moveaxis(case.mu(fold, patterns), -1, 0)
        return np.stack([0.3 * left, 0.7 * left, right, tie], axis=-1)

    sample = replace(case.sample, rule=graded, votes=votes)
    result = restricted(sample, mu, policy, clustering=CLUSTERING)
    np.testing.assert_allclose(result.estimate.value, plain.estimate.value, atol=1e-12)


def test_nothing_decisive_is_not_identified() -> None:
    case = random_case(np.random.default_rng(4), n_items=3, n_rows=30)
    policy = pair_frequencies(case.sample, unit="context")
    even = replace(case.sample, rule=Rule(np.full(3, 0.5), np.full(3, 0.5)))
    tied = replace(case.sample, votes=replace(case.sample.votes, outcome=np.full(len(case.sample.votes), 2)))
    for sample in (even, tied):
        with pytest.raises(NotIdentified, match="decisive"):
            restricted(sample, case.mu, policy, clustering=CLUSTERING)


def test_two_items_on_fixed_sides_are_not_identified() -> None:
    """An advantage of the left side would say the same."""
    case = random_case(np.random.default_rng(6), n_items=2, n_rows=40)
    sample = replace(case.sample, votes=case.sample.votes.take(case.sample.votes.left == 0))
    with pytest.raises(NotIdentified, match="position"):
        restricted(sample, case.mu, pair_frequencies(sample, unit="context"), clustering=CLUSTERING)
