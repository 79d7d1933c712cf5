"""The estimands: known answers, Jacobians against central differences, invariants."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit

from app.stats.errors import InvalidInput
from app.stats.gars import (
    BUILT_IN,
    Borda,
    BradleyTerry,
    Estimand,
    Graph,
    PairwiseEstimand,
    RankCentrality,
    Robust,
    Threshold,
    components,
    estimand,
    unsupported_shares,
)
from app.stats.types import Bools, Floats, Rule

ESTIMANDS = (*BUILT_IN, RankCentrality(damping=0.15, name="pagerank"))
STEP = 1e-6


def random_graph(rng: np.random.Generator, n_items: int) -> Graph:
    """Pairs at random, each with one order or both."""
    upper = rng.choice([0.0, 0.5, 1.0], size=(n_items, n_items))
    kept = np.triu(rng.random((n_items, n_items)) < 0.7, 1)
    order = np.where(kept, upper, 0.0) + np.where(kept, 1.0 - upper, 0.0).T
    return Graph.largest(order, (order > 0) * rng.integers(1, 9, order.shape))


def random_rule(rng: np.random.Generator, n_categories: int) -> Rule:
    first, second = rng.uniform(0.0, 1.0, (2, n_categories))
    if n_categories > 2:
        first[-1] = second[-1] = 0.0
    return Rule(first, second)


def random_mu(rng: np.random.Generator, n_items: int, n_categories: int) -> Floats:
    return rng.dirichlet(np.ones(n_categories), size=(2, n_items, n_items)) * 0.8 + 0.2 / n_categories


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_items=st.integers(2, 7),
    n_categories=st.integers(2, 5),
    chosen=st.sampled_from(ESTIMANDS),
    sparse=st.booleans(),
)
def test_jacobian_equals_central_differences(
    seed: int, n_items: int, n_categories: int, chosen: Estimand, sparse: bool
) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, n_items) if sparse else Graph.complete(n_items)
    rule, mu = random_rule(rng, n_categories), random_mu(rng, n_items, n_categories)
    left, right = np.nonzero(~np.eye(n_items, dtype=bool))
    left, right = np.tile(left, 2), np.tile(right, 2)
    index = np.repeat([0, 1], left.size // 2)
    p = rule.scores(mu)
    jacobian = (
        chosen.gradient_at(p, index, left, right, graph)[:, :, None] * rule.gradient(mu)[index, left, right][:, None]
    )
    for at, (i, j, k) in enumerate(zip(index, left, right, strict=True)):
        for category in range(n_categories):
            ahead, behind = mu.copy(), mu.copy()
            ahead[i, j, k, category] += STEP
            behind[i, j, k, category] -= STEP
            rise = (chosen.value(rule.scores(ahead), graph) - chosen.value(rule.scores(behind), graph))[i]
            scale = 1.0 + np.abs(jacobian[at]).max()
            np.testing.assert_allclose(jacobian[at, :, category] / scale, rise / (2 * STEP) / scale, atol=1e-7)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_items=st.integers(2, 9), chosen=st.sampled_from(ESTIMANDS))
def test_relabelling_items_permutes_the_answer(seed: int, n_items: int, chosen: Estimand) -> None:
    rng = np.random.default_rng(seed)
    graph, p = random_graph(rng, n_items), rng.uniform(0.05, 0.95, (1, n_items, n_items))
    new = rng.permutation(n_items)
    other = Graph(graph.order[np.ix_(new, new)], graph.component[new])
    np.testing.assert_allclose(chosen.value(p[:, new][:, :, new], other), chosen.value(p, graph)[:, new], atol=1e-12)


@settings(deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n_items=st.integers(2, 9))
def test_shares_of_a_pair_sum_to_one(seed: int, n_items: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, n_items)
    shares = graph.shares(rng.random((3, n_items, n_items)))
    np.testing.assert_allclose(
        shares + np.swapaxes(shares, 1, 2), np.broadcast_to(graph.edges, shares.shape), atol=1e-15
    )


def additive(scores: Floats, position: float = 0.0) -> Floats:
    return expit(scores[:, None] - scores[None, :] + position)[None]


def test_projection_returns_the_scores_of_an_exact_model() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(0, 1, 6)
    ring = np.roll(np.eye(6), 1, axis=1) / 2
    expected = (scores - scores.mean())[None]
    for graph in (Graph.complete(6), Graph.largest(ring + ring.T, np.ones((6, 6)))):
        np.testing.assert_allclose(BradleyTerry().value(additive(scores), graph), expected, atol=1e-12)
    # On both orders a position effect cancels.
    np.testing.assert_allclose(BradleyTerry().value(additive(scores, 0.4), Graph.complete(6)), expected, atol=1e-12)


def test_inverse_laplacian_is_the_pseudo_inverse() -> None:
    graph = random_graph(np.random.default_rng(8), 7)
    laplacian = np.diag(graph.degree) - graph.edges
    np.testing.assert_allclose(graph.laplacian_inverse, np.linalg.pinv(laplacian, hermitian=True), atol=1e-12)


def test_projection_is_the_least_squares_fit() -> None:
    rng = np.random.default_rng(2)
    graph, p = random_graph(rng, 7), rng.uniform(0.1, 0.9, (1, 7, 7))
    left, right = np.nonzero(np.triu(graph.edges))
    log_odds = np.log(p / (1 - p))[0]
    target = graph.order[left, right] * log_odds[left, right] - graph.order[right, left] * log_odds[right, left]
    design = np.eye(7)[left] - np.eye(7)[right]
    fit = np.linalg.lstsq(design, target, rcond=None)[0]
    np.testing.assert_allclose(BradleyTerry().value(p, graph)[0], np.where(graph.component, fit, 0.0), atol=1e-12)


def test_clipped_scores_have_no_gradient_and_are_counted() -> None:
    p = np.full((1, 3, 3), 0.5)
    p[0, 0, 1] = 0.9999
    pair = np.array([0]), np.array([0]), np.array([1])
    assert not BradleyTerry().gradient_at(p, *pair, Graph.complete(3)).any()
    assert BradleyTerry().clipped(p, Graph.complete(3)) == 1


def test_equal_items_are_uniform_for_rank_centrality() -> None:
    p = np.full((1, 5, 5), 0.5)
    for chosen in (RankCentrality(), RankCentrality(0.3), RankCentrality(1.0)):
        np.testing.assert_allclose(chosen.value(p, Graph.complete(5)), 0.2, atol=1e-14)


@pytest.mark.parametrize("damping", [0.0, 0.2])
def test_rank_centrality_is_where_the_walk_settles(damping: float) -> None:
    rng = np.random.default_rng(3)
    graph, p = random_graph(rng, 6), rng.uniform(0.1, 0.9, (1, 6, 6))
    loss = graph.shares(p)[0].T[np.ix_(graph.ranked, graph.ranked)]
    step = (1 - damping) * loss / loss.sum(axis=1, keepdims=True) + damping / graph.ranked.size
    mass = np.full(graph.ranked.size, 1 / graph.ranked.size)
    for _ in range(5000):
        mass = 0.5 * mass + 0.5 * mass @ step
    np.testing.assert_allclose(RankCentrality(damping).value(p, graph)[0, graph.ranked], mass, atol=1e-12)


def test_rank_centrality_survives_an_undefeated_item() -> None:
    p = np.full((1, 3, 3), 0.5)
    p[0, 0, :], p[0, :, 0] = 1.0, 0.0
    # Rows are normalised: even from an item that never loses the walk moves on, to either rival alike.
    np.testing.assert_allclose(RankCentrality().value(p, Graph.complete(3)), [[0.4, 0.3, 0.3]], atol=1e-6)


def test_known_scores_of_three_items() -> None:
    s = np.array([[0.0, 0.8, 0.6], [0.2, 0.0, 0.7], [0.4, 0.3, 0.0]])
    p = s[None]
    graph = Graph.complete(3)
    np.testing.assert_allclose(Borda().value(p, graph), [[0.7, 0.45, 0.35]])
    np.testing.assert_allclose(Threshold(1e-4).value(p, graph), [[1.0, 0.5, 0.0]], atol=1e-12)
    np.testing.assert_allclose(Robust(1e-3).value(p, graph), [[0.6, 0.2, 0.3]], atol=1e-12)


def test_items_outside_the_component_stay_at_zero() -> None:
    order = np.zeros((5, 5))
    order[0, 1], order[2, 3], order[3, 4] = 1.0, 1.0, 1.0
    graph = Graph.largest(order, order * np.array([9, 0, 1, 2, 0])[:, None])
    assert graph.component.tolist() == [True, True, False, False, False]
    p = np.full((1, 5, 5), 0.7)
    for chosen in ESTIMANDS:
        assert not chosen.value(p, graph)[:, 2:].any()
        assert not chosen.gradient_at(p, np.array([0]), np.array([2]), np.array([3]), graph).any()


def test_a_lone_item_has_a_finite_score() -> None:
    for chosen in ESTIMANDS:
        assert np.isfinite(chosen.value(np.full((1, 1, 1), 0.5), Graph.complete(1))).all()
    assert RankCentrality().value(np.full((1, 1, 1), 0.5), Graph.complete(1)) == 1.0


@pytest.mark.parametrize("chosen", [Borda(), BradleyTerry()])
def test_pairwise_gradient_needs_no_other_pair(chosen: PairwiseEstimand) -> None:
    rng = np.random.default_rng(4)
    graph, p = random_graph(rng, 6), rng.uniform(0.1, 0.9, (2, 6, 6))
    index, left, right = np.array([0, 1, 1]), np.array([0, 3, 5]), np.array([1, 2, 0])
    alone = chosen.gradient_of_pairs(p[index, left, right], left, right, graph)
    np.testing.assert_array_equal(alone, chosen.gradient_at(p, index, left, right, graph))
    assert isinstance(chosen, PairwiseEstimand)
    assert not isinstance(RankCentrality(), PairwiseEstimand)


def test_unsupported_share_is_the_mass_on_bare_pairs() -> None:
    supported = ~np.eye(4, dtype=bool)
    supported[0, 1] = supported[1, 0] = False
    p, size = np.full((1, 4, 4), 0.5), np.ones((1, 4, 4))
    shares = unsupported_shares(Borda(), p, Graph.complete(4), size=size, supported=supported)
    np.testing.assert_allclose(shares, [1 / 3, 1 / 3, 0, 0])
    supported[0, 1] = True
    assert not unsupported_shares(Borda(), p, Graph.complete(4), size=size, supported=supported).any()


@pytest.mark.parametrize("chosen", ESTIMANDS)
def test_unsupported_share_agrees_with_a_plain_sum(chosen: Estimand) -> None:
    rng = np.random.default_rng(5)
    p, size = rng.uniform(0.2, 0.8, (2, 5, 5)), rng.random((2, 5, 5))
    supported: Bools = rng.random((5, 5)) < 0.4
    mass = np.zeros((5, 2))
    for i, j, k in np.ndindex(2, 5, 5):
        if j != k:
            gradient = chosen.gradient_at(p, np.array([i]), np.array([j]), np.array([k]), Graph.complete(5))[0]
            bare = not (supported[j, k] or supported[k, j])
            mass += size[i, j, k] * np.abs(gradient)[:, None] * [1.0, bare]
    shares = unsupported_shares(chosen, p, Graph.complete(5), size=size, supported=supported)
    np.testing.assert_allclose(shares, mass[:, 1] / mass[:, 0], atol=1e-12)


def test_components_are_numbered_by_their_lowest_item() -> None:
    edges = np.zeros((5, 5), dtype=bool)
    edges[3, 1] = edges[1, 3] = edges[0, 4] = True
    assert components(edges).tolist() == [0, 1, 2, 1, 0]
    assert components(edges, strong=True).tolist() == [0, 1, 2, 1, 3]


@pytest.mark.parametrize("order", [np.ones((2, 2)), np.array([[0, 0.5], [0, 0]]), np.array([[0, 0.3], [0.7, 0]])])
def test_impossible_order_weights_are_refused(order: Floats) -> None:
    with pytest.raises(InvalidInput):
        Graph(order, np.ones(2, dtype=bool))


def test_edges_stay_within_the_component() -> None:
    with pytest.raises(InvalidInput):
        replace(Graph.complete(3), component=np.array([True, True, False]))


def test_names_lead_to_the_built_in_estimands() -> None:
    assert [estimand(chosen.name) for chosen in BUILT_IN] == list(BUILT_IN)
    with pytest.raises(InvalidInput):
        estimand("elo")
    with pytest.raises(InvalidInput):
        RankCentrality(damping=1.5)
    with pytest.raises(InvalidInput):
        Threshold(temperature=0.0)
