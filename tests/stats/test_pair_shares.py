"""Shares of all pairs at once: item by item as the one-step has them, thinned or not, whatever the clusters."""

from __future__ import annotations

import numpy as np
import pytest

from app.stats.debias import Clustering, Target, one_step
from app.stats.debias import pair_shares as shares_module
from app.stats.debias import thinning as thinning_module
from app.stats.debias.layout import Layout
from app.stats.debias.pair_shares import pair_shares
from app.stats.debias.thinning import Thinning
from app.stats.gars import Graph
from app.stats.gars.against import Against
from app.stats.types import Floats
from tests.stats.debias_samples import Case, random_case
from tests.stats.test_one_step import CLUSTERINGS
from tests.stats.test_thinning import Paired, stretched_parts

SIZE = 4


def _graph(*, sparse: bool) -> Graph:
    """All pairs; or without one of them, and of another a single order."""
    order = (1.0 - np.eye(SIZE)) / 2
    if sparse:
        order[0, 1] = order[1, 0] = order[3, 2] = 0.0
        order[2, 3] = 1.0
    return Graph(order, np.ones(SIZE, dtype=np.bool_))


def _case(seed: int, clustering: Clustering) -> Case:
    rng = np.random.default_rng(seed)
    return random_case(rng, n_items=SIZE, n_rows=200, n_patterns=150, battle=clustering.unit == "battle")


@pytest.mark.parametrize("clustering", CLUSTERINGS, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("small", [False, True])
def test_they_are_the_one_step_of_each_item(
    clustering: Clustering, sparse: bool, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small:
        layout = Layout.of
        monkeypatch.setattr(
            Layout, "of", lambda sample, valued, **_: layout(sample, block=100, shard=200, valued=valued)
        )
        monkeypatch.setattr(shares_module, "HELD", 10)
    case, graph = _case(1, clustering), _graph(sparse=sparse)
    found = pair_shares(case.sample, case.mu, graph, clustering=clustering)
    targets = {item: Target(Against(item), graph) for item in range(SIZE)}
    for item, result in one_step(case.sample, case.mu, targets, clustering=clustering).items():
        rivals = graph.edges[item]
        assert np.isnan(found.share[item, ~rivals]).all()
        assert np.isnan(found.error[item, ~rivals]).all()
        np.testing.assert_allclose(found.share[item, rivals], result.estimate.value[rivals], rtol=1e-12)
        # Two-way clustering of the whole covariance may raise its eigenvalues, that of a number alone does not.
        if len(clustering.terms(case.sample)) == 1:
            error = result.estimate.standard_error[rivals]
            np.testing.assert_allclose(found.error[item, rivals], error, rtol=1e-9)
    assert found.rows_used == 200


@pytest.mark.parametrize("clustering", CLUSTERINGS, ids=str)
@pytest.mark.parametrize("shard", [100, 10**6])
def test_thinned_ones_equal_the_slow_twin(clustering: Clustering, shard: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """F over the rows drawn, every vote's correction; the variance of the stretched rows by cluster."""
    monkeypatch.setattr(thinning_module, "LEAST_ROWS", 60)
    monkeypatch.setattr(thinning_module, "PAIRS", 0)
    monkeypatch.setattr(shares_module, "SHARD", shard)
    case, graph = _case(2, clustering), _graph(sparse=False)
    thinning = Thinning.of(case.sample)
    assert thinning is not None
    found = pair_shares(case.sample, Paired(case), graph, clustering=clustering)
    for item in range(SIZE):
        share, variance = _slow(case, Target(Against(item), graph), thinning, clustering)
        rivals = graph.edges[item]
        np.testing.assert_allclose(found.share[item, rivals], share[rivals], rtol=1e-12)
        np.testing.assert_allclose(
            found.error[item, rivals] ** 2, np.maximum(variance[rivals], 0.0), rtol=1e-8, atol=1e-12
        )
    assert found.rows_used == 60


def _slow(case: Case, target: Target, thinning: Thinning, clustering: Clustering) -> tuple[Floats, Floats]:
    centre, stretched, corrections = stretched_parts(case, target, thinning)
    n = case.sample.n_rows
    score = centre + corrections.sum(axis=0) / n
    variance = np.zeros(SIZE)
    for term in clustering.terms(case.sample):
        label = np.concatenate([term.row, term.vote])
        parts = np.concatenate([stretched - score, corrections])
        sums = np.stack([np.bincount(label, weights=part) for part in parts.T])
        variance += term.sign * (sums**2).sum(axis=1) / n**2
    return score, variance
