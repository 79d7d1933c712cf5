"""The one-step estimator: its slow twin, exports, invariants, unbiasedness."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.stats.debias import (
    Clustering,
    Moments,
    Target,
    effective_votes,
    estimate,
    influence_lines,
    influence_rows,
    one_step,
    segment,
    support_of,
)
from app.stats.debias.layout import Layout
from app.stats.debias.one_step import scored_blocks
from app.stats.errors import InvalidInput, NotIdentified
from app.stats.gars import BUILT_IN, Borda, BradleyTerry, Estimand, Graph, RankCentrality
from app.stats.types import Floats, Ints, Rule, Sample, Votes
from tests.stats.debias_samples import TERNARY, Case, random_case, slow_estimate

CLUSTERINGS = [
    Clustering(by, unit, fixed)
    for by in ("context", "voter", "both")
    for unit in ("battle", "context")
    for fixed in (False, True)
]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_items=st.integers(2, 6),
    chosen=st.sampled_from(BUILT_IN),
    clustering=st.sampled_from(CLUSTERINGS),
    complete=st.booleans(),
)
def test_equals_the_slow_twin(
    seed: int, n_items: int, chosen: Estimand, clustering: Clustering, complete: bool
) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng, n_items=n_items, n_rows=int(rng.integers(5, 40)), battle=clustering.unit == "battle")
    graph = Graph.complete(n_items) if complete else support_of(case.sample).observed
    target = Target(chosen, graph)
    fast = one_step(case.sample, case.mu, {0: target}, clustering=clustering)[0]
    score, covariance = slow_estimate(case, target, clustering)
    items = fast.items
    scale = 1.0 + np.abs(covariance).max()
    np.testing.assert_allclose(fast.estimate.value, score[items], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(np.diagonal(fast.estimate.covariance) >= 0, True)
    if np.linalg.eigvalsh(covariance)[0] >= -1e-12 * scale:
        np.testing.assert_allclose(fast.estimate.covariance, covariance[np.ix_(items, items)], atol=1e-10 * scale)


@pytest.mark.parametrize("clustering", CLUSTERINGS, ids=str)
@pytest.mark.parametrize("shard", [1, 100])
def test_small_blocks_change_nothing(clustering: Clustering, shard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters that span shards are summed as if there were one shard."""
    case = random_case(np.random.default_rng(1), n_items=4, n_rows=300, battle=clustering.unit == "battle")
    targets = {each.name: Target(each, Graph.complete(4)) for each in BUILT_IN}
    whole = one_step(case.sample, case.mu, targets, clustering=clustering)
    layout = Layout.of
    monkeypatch.setattr(Layout, "of", lambda sample, **_: layout(sample, block=1, shard=shard))
    assert sum(1 for _ in Layout.of(case.sample).blocks()) == 12
    parts = one_step(case.sample, case.mu, targets, clustering=clustering)
    for name, result in whole.items():
        scale = np.abs(result.estimate.covariance).max()
        np.testing.assert_allclose(parts[name].estimate.value, result.estimate.value, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(parts[name].estimate.covariance, result.estimate.covariance, atol=1e-12 * scale)


def test_mu_is_asked_once_for_each_fold_and_pattern() -> None:
    case = random_case(np.random.default_rng(2), n_items=5, n_rows=200)
    asked: list[tuple[int, int]] = []

    def mu(fold: int, patterns: Ints) -> Floats:
        asked.extend((fold, int(each)) for each in patterns)
        return case.mu(fold, patterns)

    one_step(case.sample, mu, {0: Target(Borda(), Graph.complete(5))}, clustering=Clustering())
    assert sorted(asked) == sorted(set(zip(case.sample.fold.tolist(), case.sample.pattern.tolist(), strict=True)))


@pytest.mark.parametrize("clustering", CLUSTERINGS, ids=str)
def test_exported_lines_reproduce_scores_and_errors(clustering: Clustering) -> None:
    case = random_case(np.random.default_rng(3), n_items=4, n_rows=400, battle=clustering.unit == "battle")
    result = one_step(case.sample, case.mu, {0: Target(BradleyTerry(), Graph.complete(4))}, clustering=clustering)[0]
    lines = list(influence_lines(case.sample, case.mu, result, clustering=clustering))
    psi = np.concatenate([each.psi for each in lines])
    cluster = np.concatenate([each.cluster for each in lines])
    rows = np.unique(np.concatenate([each.row for each in lines]))
    assert rows.tolist() == list(range(400))
    score = psi.mean(axis=0)
    variance = np.zeros(4)
    for column, sign in zip(cluster.T, (1.0, 1.0, -1.0), strict=False):
        sums = np.stack([np.bincount(column, weights=(psi - score)[:, item]) for item in range(4)])
        variance += sign * (sums**2).sum(axis=1) / psi.shape[0] ** 2
    np.testing.assert_allclose(score, result.estimate.value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.sqrt(variance), result.estimate.standard_error, rtol=1e-12)


def test_influence_rows_average_to_score_and_plug_in() -> None:
    case = random_case(np.random.default_rng(4), n_items=4, n_rows=100)
    target = Target(RankCentrality(), Graph.complete(4))
    result = one_step(case.sample, case.mu, {0: target}, clustering=Clustering())[0]
    rows = list(influence_rows(case.sample, case.mu, target))
    np.testing.assert_allclose(np.concatenate([each.value for each in rows]).mean(axis=0), result.plug_in, rtol=1e-12)
    corrections = np.concatenate([each.correction for each in rows]).mean(axis=0)
    np.testing.assert_allclose(corrections, result.correction, atol=1e-12)
    assert np.abs(result.correction).max() > 1e-3


def test_moments_of_shards_merge_and_a_row_is_replaced() -> None:
    psi = np.random.default_rng(5).normal(size=(50, 3))
    late = psi.copy()
    late[7] += 1.0
    merged = Moments.of(psi[:20]) + Moments.of(psi[20:])
    changed = merged.replaced(psi[7:8], late[7:8]).estimate()
    np.testing.assert_allclose(merged.estimate().covariance, np.cov(psi.T, bias=True) / 50, atol=1e-15)
    np.testing.assert_allclose(changed.value, late.mean(axis=0), atol=1e-15)
    np.testing.assert_allclose(changed.covariance, np.cov(late.T, bias=True) / 50, atol=1e-15)
    with pytest.raises(NotIdentified):
        Moments.of(psi[:0]).estimate()


def test_moments_of_influence_rows_are_the_estimate_without_clusters() -> None:
    case = random_case(np.random.default_rng(6), n_items=3, n_rows=80)
    target = Target(Borda(), Graph.complete(3))
    result = one_step(case.sample, case.mu, {0: target}, clustering=Clustering(fixed=True))[0]
    parts = [Moments.of(each.psi) for each in influence_rows(case.sample, case.mu, target)]
    merged = sum(parts[1:], parts[0]).estimate()
    np.testing.assert_allclose(merged.value, result.estimate.value, rtol=1e-12)
    np.testing.assert_allclose(merged.covariance, result.estimate.covariance, atol=1e-13)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), chosen=st.sampled_from(BUILT_IN))
def test_relabelling_items_permutes_the_answer(seed: int, chosen: Estimand) -> None:
    rng = np.random.default_rng(seed)
    case = random_case(rng, n_items=5, n_rows=30)
    place = rng.permutation(5)
    votes = case.sample.votes
    moved = replace(case.sample, votes=replace(votes, left=place[votes.left], right=place[votes.right]))
    back = np.argsort(place)
    table = case.table[:, :, back][:, :, :, back]
    before = estimate(case.sample, case.mu, [chosen], clustering=Clustering())[chosen.name]
    after = estimate(moved, Case(moved, table).mu, [chosen], clustering=Clustering())[chosen.name]
    for one, other in ((before.every, after.every), (before.observed, after.observed)):
        wanted = np.argsort(place[one.items])
        scale = 1.0 + np.abs(one.estimate.value).max()
        np.testing.assert_allclose(other.estimate.value, one.estimate.value[wanted], atol=1e-9 * scale)
        errors = one.estimate.standard_error[wanted]
        np.testing.assert_allclose(other.estimate.standard_error, errors, atol=1e-9, rtol=1e-7)
    np.testing.assert_allclose(after.unsupported[place], before.unsupported, atol=1e-12)


def test_true_nuisances_give_an_unbiased_score_with_the_right_error() -> None:
    """Borda is linear, so with the true pi even a wrong mu leaves it unbiased; one label at most per offer."""
    rng = np.random.default_rng(7)
    truth = rng.dirichlet(np.ones(3), size=(1, 2, 3, 3))
    wrong = rng.dirichlet(np.ones(3), size=(1, 2, 3, 3))
    pairs = np.argwhere(~np.eye(3, dtype=bool))
    chance = np.array([rng.dirichlet(np.full(7, 3.0))[:6] for _ in range(2)])
    target = {0: Target(Borda(), Graph.complete(3))}
    scores, errors = [], []
    for _ in range(300):
        pattern = rng.integers(0, 2, 400)
        drawn = (rng.random((400, 1)) > np.cumsum(chance, axis=1)[pattern]).sum(axis=1)
        row = np.flatnonzero(drawn < 6)
        left, right = pairs[drawn[row]].T
        outcome = (rng.random((row.size, 1)) > np.cumsum(truth[0, pattern[row], left, right], axis=1)).sum(axis=1)
        pi = chance[pattern[row], drawn[row]]
        votes = Votes(row, left, right, outcome.clip(0, 2), np.ones(row.size), np.arange(row.size), pi)
        sample = Sample(3, TERNARY, votes, np.arange(400), np.zeros(400, dtype=np.int64), pattern)
        result = one_step(sample, Case(sample, wrong).mu, target, clustering=Clustering())[0].estimate
        scores.append(result.value)
        errors.append(result.standard_error)
    exact = Borda().value(TERNARY.scores(truth[0]), Graph.complete(3)).mean(axis=0)
    spread = np.std(scores, axis=0)
    assert (np.abs(np.mean(scores, axis=0) - exact) < 4 * spread / np.sqrt(300)).all()
    np.testing.assert_allclose(np.mean(errors, axis=0), spread, rtol=0.15)


def test_known_answer() -> None:
    """Two items, a flat mu, three rows; A wins twice (pi ½, ¼), one row has no label."""
    votes = Votes(
        np.array([0, 1]),
        np.array([0, 1]),
        np.array([1, 0]),
        np.array([0, 1]),
        np.ones(2),
        np.arange(2),
        np.array([0.5, 0.25]),
    )
    zero = np.zeros(3, dtype=np.int64)
    sample = Sample(2, Rule(np.array([1.0, 0.0]), np.array([0.0, 1.0])), votes, np.arange(3), zero, zero)
    flat = Case(sample, np.full((1, 1, 2, 2, 2), 0.5))
    result = one_step(sample, flat.mu, {0: Target(Borda(), Graph.complete(2))}, clustering=Clustering())[0]
    # psi of A: ½ + ½ · ½ / ½, ½ + ½ · ½ / ¼, ½.
    psi = np.array([1.0, 1.5, 0.5])
    np.testing.assert_allclose(result.estimate.value, [1.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(result.estimate.standard_error, np.sqrt(((psi - 1.0) ** 2).sum()) / 3)
    np.testing.assert_allclose(result.plug_in, [0.5, 0.5])
    np.testing.assert_allclose(effective_votes(votes, 2), 36.0 / 20.0)


def test_a_segment_is_the_sample_of_its_rows() -> None:
    case = random_case(np.random.default_rng(8), n_items=3, n_rows=40)
    rows = case.sample.pattern < 2
    part = segment(case.sample, rows, propensity=case.sample.votes.propensity / 2)
    assert part.n_rows == rows.sum()
    kept = rows[case.sample.votes.row]
    np.testing.assert_array_equal(np.flatnonzero(rows)[part.votes.row], case.sample.votes.row[kept])
    np.testing.assert_array_equal(part.votes.propensity, case.sample.votes.propensity[kept] / 2)


def test_broken_samples_are_refused() -> None:
    case = random_case(np.random.default_rng(9), n_items=3, n_rows=10)
    target = {0: Target(Borda(), Graph.complete(3))}
    votes = replace(case.sample.votes, propensity=np.zeros(len(case.sample.votes)))
    with pytest.raises(InvalidInput, match="propensities"):
        one_step(replace(case.sample, votes=votes), case.mu, target, clustering=Clustering())
    empty = segment(case.sample, np.zeros(10, dtype=np.bool_), propensity=case.sample.votes.propensity)
    with pytest.raises(InvalidInput, match="rows"):
        one_step(empty, case.mu, target, clustering=Clustering())


def test_chances_that_are_no_numbers_are_refused() -> None:
    case = random_case(np.random.default_rng(3), n_items=3, n_rows=12)

    def broken(fold: int, patterns: Ints) -> Floats:
        mu = case.mu(fold, patterns).copy()
        mu[0, 0, 1] = np.nan
        return mu

    with pytest.raises(InvalidInput, match="no numbers"):
        estimate(case.sample, broken, [Borda()], clustering=Clustering())


def test_blocks_hold_every_row_and_vote_once() -> None:
    case = random_case(np.random.default_rng(10), n_items=4, n_rows=50)
    layout = Layout.of(case.sample, block=200)
    blocks = [scored.block for scored in scored_blocks(case.sample, case.mu, layout)]
    assert len(blocks) > 3
    assert sorted(np.concatenate([each.rows for each in blocks])) == list(range(50))
    assert sorted(np.concatenate([each.votes for each in blocks])) == list(range(150))
