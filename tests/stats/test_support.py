"""Support, pairs modes, statuses; and boards with next to no data."""

from __future__ import annotations

import numpy as np
import pytest

from app.stats.debias import Clustering, automatic_pairs, estimate, support_of, support_statuses
from app.stats.gars import BUILT_IN, Borda, RankCentrality
from app.stats.types import Bools, Floats, Ints, Rule, Sample, Votes
from tests.stats.debias_samples import TERNARY, Case


def board(pairs: list[tuple[int, int, int]], n_items: int, *, possible: Bools | None = None) -> Sample:
    """Battles given as (left, right, how many), two wins of the left item in three."""
    left = np.concatenate([np.full(times, j) for j, _, times in pairs] or [np.zeros(0)]).astype(np.int64)
    right = np.concatenate([np.full(times, k) for _, k, times in pairs] or [np.zeros(0)]).astype(np.int64)
    size, n_rows = left.size, max(left.size, 1)
    row = np.arange(size)
    votes = Votes(row, left, right, row % 3 % 2, np.ones(size), row, np.full(size, 0.5))
    zero = np.zeros(n_rows, dtype=np.int64)
    return Sample(n_items, TERNARY, votes, np.arange(n_rows), row % 2 if size else zero, zero, possible)


def flat(sample: Sample, *, n_categories: int = 3) -> Case:
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(n_categories), size=(2, 1, sample.n_items, sample.n_items))
    return Case(sample, table)


def test_order_weights() -> None:
    """0-1 both orders, 0-2 seen on one side 16 times, 1-2 on one side 15 times."""
    support = support_of(board([(0, 1, 3), (1, 0, 2), (0, 2, 16), (2, 1, 15)], 3))
    np.testing.assert_array_equal(support.observed.order, [[0, 0.5, 1], [0.5, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(support.every.order, [[0, 0.5, 1], [0.5, 0, 0.5], [0, 0.5, 0]])
    assert support.supported.sum() == 6
    assert not support.is_complete


@pytest.mark.parametrize(("flipped", "fixed"), [(0.0, True), (0.5, False)])
def test_sides_that_are_fixed_for_all_pairs_are_seen_early(flipped: float, fixed: bool) -> None:
    rng = np.random.default_rng(5)
    shown = [(j, k) if rng.random() >= flipped else (k, j) for j in range(8) for k in range(j) for _ in range(3)]
    support = support_of(board([(j, k, 1) for j, k in shown], 8))
    assert bool((support.every.order[np.tril_indices(8, -1)] == 1).all()) is fixed
    assert bool((support.every.order[~np.eye(8, dtype=np.bool_)] == 0.5).all()) is not fixed


def test_known_policy_decides_by_itself() -> None:
    possible = np.array([[False, True, True], [False, False, True], [False, True, False]])
    support = support_of(board([(0, 1, 30)], 3, possible=possible))
    wanted = [[0, 1, 1], [0, 0, 0.5], [0, 0.5, 0]]
    np.testing.assert_array_equal(support.every.order, wanted)
    np.testing.assert_array_equal(support.observed.order, wanted)
    assert support.is_complete


def test_pair_without_either_order_counts_both_ways_on_all_pairs() -> None:
    support = support_of(board([(0, 1, 2), (1, 2, 2)], 3))
    assert support.every.order[0, 2] == support.every.order[2, 0] == 0.5
    assert support.observed.order[0, 2] == support.observed.order[2, 0] == 0.0


def test_component_with_most_votes_is_ranked() -> None:
    sample = board([(0, 1, 4), (1, 2, 4), (3, 4, 9)], 6)
    support = support_of(sample)
    assert support.observed.ranked.tolist() == [3, 4]
    scores = estimate(sample, flat(sample).mu, BUILT_IN, clustering=Clustering())["bt"]
    assert scores.unsupported.tolist() == [1, 1, 1, 0, 0, 1]
    assert scores.auto == "observed"
    assert scores.statuses("all") == ["disconnected"] * 3 + ["ok"] * 2 + ["disconnected"]
    assert scores.of("observed").items.tolist() == [3, 4]
    assert scores.of("observed").estimate.value.shape == (2,)


def test_unsupported_share_is_that_of_missing_rivals() -> None:
    """Borda under flat mu: each rival weighs the same, so one missing rival of four is a quarter."""
    pairs = [(j, k, 5) for j in range(5) for k in range(5) if j != k and {j, k} != {0, 1}]
    sample = board(pairs, 5)
    even = Case(sample, np.full((2, 1, 5, 5, 3), 1 / 3))
    scores = estimate(sample, even.mu, [Borda(), RankCentrality()], clustering=Clustering())
    np.testing.assert_allclose(scores["borda"].unsupported, [0.25, 0.25, 0, 0, 0], atol=1e-12)
    assert scores["borda"].statuses("all") == ["extrapolated"] * 2 + ["ok"] * 3
    assert scores["borda"].statuses("observed") == ["ok"] * 5
    assert scores["borda"].auto == "observed"
    assert (scores["rc"].unsupported > 0).all()
    assert scores["borda"].every.target.graph.edges.sum() == 20
    assert scores["borda"].observed.target.graph.edges.sum() == 18


@pytest.mark.parametrize(("share", "pairs"), [(0.05, "all"), (0.051, "observed")])
def test_automatic_mode(share: float, pairs: str) -> None:
    assert automatic_pairs(np.array([0.0, share])) == pairs


def test_full_support_has_one_result_and_shares_of_zero() -> None:
    sample = board([(0, 1, 3), (1, 0, 3)], 2)
    scores = estimate(sample, flat(sample).mu, BUILT_IN, clustering=Clustering())
    for each in scores.values():
        assert each.every is each.observed
        assert each.unsupported.tolist() == [0, 0]
        assert each.auto == "all"


def test_many_patterns_are_sampled_by_seed() -> None:
    rng = np.random.default_rng(1)
    base = board([(0, 1, 60), (1, 2, 60)], 3)
    sample = Sample(3, TERNARY, base.votes, base.context, base.fold, np.arange(120))
    case = Case(sample, rng.dirichlet(np.ones(3), size=(2, 120, 3, 3)))
    one, same, other = (
        estimate(sample, case.mu, [RankCentrality()], clustering=Clustering(), seed=seed)["rc"].unsupported
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)
    np.testing.assert_allclose(one, other, atol=0.1)


SMALL: dict[str, list[tuple[int, int, int]]] = {
    "no votes": [],
    "one vote": [(0, 1, 1)],
    "three votes": [(0, 1, 1), (1, 2, 1), (2, 0, 1)],
    "an item without votes": [(0, 1, 9), (1, 0, 9)],
    "two components": [(0, 1, 9), (2, 3, 9)],
    "undefeated": [(0, 1, 1), (0, 2, 1), (0, 3, 1)],
}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("clustering", [Clustering("context"), Clustering("both"), Clustering("voter", "context")])
def test_small_boards_have_statuses_and_never_nan(name: str, clustering: Clustering) -> None:
    sample = board(SMALL[name], 4)
    for each in estimate(sample, flat(sample).mu, BUILT_IN, clustering=clustering).values():
        for pairs in ("all", "observed"):
            result = each.of(pairs)
            assert len(each.statuses(pairs)) == 4
            ranked = [at for at, status in enumerate(each.statuses(pairs)) if status != "disconnected"]
            assert result.items.tolist() == ranked
            for array in (result.estimate.value, result.estimate.covariance, result.plug_in, each.unsupported):
                assert np.isfinite(array).all()


@pytest.mark.parametrize("certain", [0, 1, 2])
def test_one_outcome_only_stays_finite(certain: int) -> None:
    """A model sure of one category, weights that leave nothing to divide by included."""
    for rule in (TERNARY, Rule(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))):
        sample = board([(0, 1, 5), (1, 0, 5), (1, 2, 5)], 3)
        sample = Sample(3, rule, sample.votes, sample.context, sample.fold, sample.pattern)
        table: Floats = np.broadcast_to(np.eye(3)[certain], (2, 1, 3, 3, 3))
        for each in estimate(sample, Case(sample, table).mu, BUILT_IN, clustering=Clustering()).values():
            assert np.isfinite(each.observed.estimate.value).all()
            assert np.isfinite(each.observed.estimate.covariance).all()


def test_statuses_follow_shares() -> None:
    sample = board([(0, 1, 3), (1, 2, 3)], 3)
    shares = np.array([0.2, 0.05, 0.06])
    assert support_statuses(support_of(sample), shares, pairs="all") == ["extrapolated", "ok", "extrapolated"]


def test_votes_are_counted_by_ordered_pair() -> None:
    counts: Ints = support_of(board([(0, 1, 3), (1, 0, 2)], 2)).votes
    assert counts.tolist() == [[0, 3], [2, 0]]
