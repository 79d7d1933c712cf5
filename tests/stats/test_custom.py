"""Estimands of one's own: their Jacobians against central differences, and what is refused."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from app.stats.debias import Clustering, Target, estimate, one_step
from app.stats.errors import InvalidInput
from app.stats.gars import Borda, CustomEstimand, Graph, custom, unsupported_shares
from app.stats.gars.custom import Derivative, ScoreFunction
from app.stats.types import Floats
from tests import own_estimands as own
from tests.stats.debias_samples import random_case

STEP = 1e-6


def scores_of(rng: np.random.Generator, size: int) -> Floats:
    """(3, K, K) scores of ordered pairs."""
    p: Floats = rng.uniform(0.1, 0.9, (3, size, size))
    return p


@pytest.mark.parametrize(
    ("function", "derivative", "vectorised"),
    [
        (own.mean_share, "complex", True),
        (own.spread, "complex", False),
        (own.beaten, "central", True),
        (own.worst, "central", True),
    ],
)
def test_jacobian_equals_central_differences(function: ScoreFunction, derivative: Derivative, vectorised: bool) -> None:
    chosen = custom("mine", function)
    assert (chosen.derivative, chosen.vectorised) == (derivative, vectorised)
    rng = np.random.default_rng(1)
    order = np.where(rng.random((5, 5)) < 0.5, 0.5, 1.0)
    order = np.triu(order, 1) + np.tril(1.0 - order.T, -1)
    order[4, :] = order[:, 4] = 0.0
    graphs = (Graph.complete(4), Graph.largest(order, np.ones((5, 5))))
    for graph in graphs:
        p = scores_of(rng, graph.n_items)
        index, left, right = (each.ravel() for each in np.indices(p.shape))
        jacobian = chosen.gradient_at(p, index, left, right, graph)
        for at, (i, j, k) in enumerate(zip(index, left, right, strict=True)):
            if j == k:
                continue
            ahead, behind = p.copy(), p.copy()
            ahead[i, j, k] += STEP
            behind[i, j, k] -= STEP
            rise = (chosen.value(ahead, graph) - chosen.value(behind, graph))[i] / (2 * STEP)
            np.testing.assert_allclose(jacobian[at], rise, atol=2e-6 * (1.0 + np.abs(rise).max()))
        assert not chosen.value(p, graph)[:, ~graph.component].any()


def test_borda_written_by_hand_is_borda() -> None:
    case = random_case(np.random.default_rng(2), n_items=4, n_rows=60)
    graph = Graph.complete(4)
    targets = {0: Target(Borda(), graph), 1: Target(custom("mine", own.mean_share), graph)}
    found = one_step(case.sample, case.mu, targets, clustering=Clustering())
    np.testing.assert_allclose(found[1].estimate.value, found[0].estimate.value, atol=1e-10)
    np.testing.assert_allclose(found[1].estimate.covariance, found[0].estimate.covariance, atol=1e-10)


def test_large_boards_are_taken_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen, graph = custom("mine", own.mean_share), Graph.complete(4)
    p = scores_of(np.random.default_rng(3), 4)
    place = (np.array([0, 1, 2, 2, 1]), np.array([0, 1, 2, 3, 0]), np.array([1, 0, 3, 1, 2]))
    whole = chosen.gradient_at(p, *place, graph)
    monkeypatch.setattr(sys.modules[CustomEstimand.__module__], "HELD", 32)
    np.testing.assert_array_equal(chosen.gradient_at(p, *place, graph), whole)


def test_certain_shares_still_have_a_slope() -> None:
    p = np.triu(np.ones((1, 3, 3)))
    chosen = custom("mine", own.spread)
    at = (np.array([0]), np.array([0]), np.array([1]))
    assert np.isfinite(chosen.value(p, Graph.complete(3))).all()
    assert np.isfinite(chosen.gradient_at(p, *at, Graph.complete(3))).all()


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (own.of_no_shape, r"float64 of shape \(2, 2\), expected 2 real scores"),
        (own.not_finite, "not finite"),
        (own.changing, "read-only"),
        (own.moody, "other scores when it is asked again"),
        (own.median_share, "not finite|fails"),
        (lambda s: s.sum(axis=-1) * 1j, "complex128"),
        (lambda s: [str(each) for each in s.sum(axis=-1)], "expected 2 real scores"),
        (lambda s: s.nothing, "fails on 2 items"),
    ],
)
def test_what_gives_no_scores_is_refused(function: ScoreFunction, message: str) -> None:
    with np.errstate(divide="ignore"), pytest.raises(InvalidInput, match=message):
        custom("mine", function)


def test_numbers_that_are_not_finite_stop_the_estimate() -> None:
    steep = custom("mine", own.spread)
    broken = CustomEstimand("mine", lambda s: s.sum(axis=-1) / 0.0, vectorised=True, derivative="complex")
    p, graph = scores_of(np.random.default_rng(4), 3), Graph.complete(3)
    assert np.isfinite(steep.value(p, graph)).all()
    with np.errstate(all="ignore"), pytest.raises(InvalidInput, match="not finite"):
        broken.value(p, graph)


def test_observed_pairs_are_no_mode_of_a_function_of_all_shares() -> None:
    rng = np.random.default_rng(5)
    case = random_case(rng, n_items=5, n_rows=40)
    votes = case.sample.votes
    kept = ~((np.minimum(votes.left, votes.right) == 0) & (np.maximum(votes.left, votes.right) == 1))
    sample = type(case.sample)(
        5, case.sample.rule, votes.take(kept), *(case.sample.context, case.sample.fold), case.sample.pattern
    )
    found = estimate(sample, case.mu, [Borda(), custom("mine", own.mean_share)], clustering=Clustering())
    assert found["borda"].auto == "observed"
    assert found["mine"].auto == "all"
    assert found["mine"].observed is found["mine"].every
    assert found["mine"].statuses("all")[:2] == ["extrapolated"] * 2
    np.testing.assert_allclose(found["mine"].every.estimate.value, found["borda"].every.estimate.value, atol=1e-10)
    np.testing.assert_allclose(found["mine"].unsupported, found["borda"].unsupported, atol=1e-9)


def test_unsupported_mass_counts_slopes_of_bare_pairs() -> None:
    supported = ~np.eye(4, dtype=np.bool_)
    supported[0, 1] = supported[1, 0] = False
    shares = unsupported_shares(
        custom("mine", own.mean_share),
        np.full((1, 4, 4), 0.5),
        Graph.complete(4),
        size=np.ones((1, 4, 4)),
        supported=supported,
    )
    np.testing.assert_allclose(shares, [1 / 3, 1 / 3, 0, 0])
