"""Folds and canonical order depend on content alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.stats.debias import (
    Clustering,
    RowContent,
    assign_folds,
    canonical_order,
    content_hash,
    estimate,
    mix,
)
from app.stats.debias.folds import ClusterBy, FoldRule
from app.stats.gars import BUILT_IN
from app.stats.types import Floats, Ints, Sample, Votes
from tests.stats.debias_samples import TERNARY, Case


def content(n_contexts: int, n_rows: int, *, voters: int | None = None) -> RowContent:
    number = np.arange(n_rows)
    context = content_hash([f"c{i % n_contexts}" for i in range(n_rows)])
    voter = None if voters is None else content_hash([f"v{i % voters}" for i in range(n_rows)])
    return RowContent(context, mix(context, number), np.ones(n_rows, dtype=np.bool_), voter)


def test_content_hash_is_blake2_of_the_string() -> None:
    # hashlib.blake2b(b"abc", digest_size=8), little endian: fixed for ever, snapshots depend on it.
    assert content_hash(["abc", "", "abc"]).tolist() == [0x5995D533D814BBD8, 0xB4B2797457A0A6E4, 0x5995D533D814BBD8]


def test_mix_depends_on_order_and_spreads() -> None:
    one, two = np.array([1, 2, 3]), np.array([2, 1, 3])
    assert mix(one, two)[0] != mix(two, one)[0]
    assert mix(one, two)[2] == mix(two, one)[2]
    counts = np.bincount((mix(np.arange(50_000)) % np.uint64(5)).astype(np.int64))
    assert (np.abs(counts - 10_000) < 400).all()


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(0, 60))
def test_canonical_order_undoes_a_shuffle(seed: int, size: int) -> None:
    rng = np.random.default_rng(seed)
    names = np.array(["x", "y", "z"])
    columns = [names[rng.integers(0, 3, size)], rng.integers(0, 2, size), rng.integers(0, 2, size)]
    propensity = rng.choice([0.1, 0.2], size)
    shuffle = rng.permutation(size)
    order, occurrence = canonical_order(*columns, ties=(propensity,))
    again, other = canonical_order(*[each[shuffle] for each in columns], ties=(propensity[shuffle],))
    for column in (*columns, propensity):
        np.testing.assert_array_equal(column[order], column[shuffle][again])
    np.testing.assert_array_equal(occurrence, other)
    seen: dict[tuple[object, ...], int] = {}
    for vote, count in zip(order, occurrence, strict=True):
        key = tuple(column[vote] for column in columns)
        assert seen.get(key, 0) == count
        seen[key] = count + 1


@pytest.mark.parametrize(
    ("n_contexts", "voters", "by", "rule"),
    [
        (50, None, "context", "context"),
        (49, None, "context", "offer"),
        (50, 30, "voter", "voter"),
        (50, None, "voter", "context"),
        (50, 30, "both", "context"),
        (49, 30, "both", "voter"),
        (50, 1, "voter", "context"),
        (2, 1, "voter", "offer"),
    ],
)
def test_rule(n_contexts: int, voters: int | None, by: ClusterBy, rule: FoldRule) -> None:
    folds = assign_folds(content(n_contexts, 200, voters=voters), 5, by=by)
    assert folds.rule == rule
    assert set(folds.fold.tolist()) <= set(range(5))


def test_rows_of_one_unit_share_a_fold_whatever_their_order() -> None:
    rows = content(80, 400, voters=90)
    shuffle = np.random.default_rng(0).permutation(400)
    moved = RowContent(rows.context[shuffle], rows.offer[shuffle], rows.labelled, rows.voter)
    fold = assign_folds(rows, 5, by="context").fold
    np.testing.assert_array_equal(assign_folds(moved, 5, by="context").fold, fold[shuffle])
    assert all(np.unique(fold[rows.context == each]).size == 1 for each in np.unique(rows.context))
    assert np.bincount(fold).min() > 30


@pytest.mark.parametrize("labelled", [2, 3, 4, 7])
@pytest.mark.parametrize("n_rows", [7, 300])
def test_no_training_set_is_empty_when_there_are_two_labels(labelled: int, n_rows: int) -> None:
    for seed in range(20):
        context = content_hash([f"{seed}-{i}" for i in range(n_rows)])
        rows = RowContent(context, context, np.arange(n_rows) < labelled)
        fold = assign_folds(rows, 5, by="context").fold[:labelled]
        assert all((fold != number).any() for number in range(5))


def test_one_row_and_no_row_have_folds() -> None:
    for size in (0, 1):
        empty = np.arange(size).astype(np.uint64)
        assert assign_folds(RowContent(empty, empty, np.ones(size, dtype=np.bool_)), 5, by="context").fold.size == size


def test_shuffled_votes_give_the_same_bits() -> None:
    rng = np.random.default_rng(11)
    file = [rng.integers(0, high, 300) for high in (40, 4, 4, 30, 3)]
    file[2] = (file[1] + 1 + file[2] % 3) % 4
    propensity = rng.uniform(0.1, 1.0, 300)
    table = rng.dirichlet(np.ones(3), size=(5, 40, 4, 4))

    def snapshot(order: Ints) -> list[Floats]:
        context, left, right, voter, outcome = (column[order] for column in file)
        pi = propensity[order]
        canon, occurrence = canonical_order(context, left, right, voter, outcome, ties=(pi,))
        key = mix(*(column[canon] for column in (context, left, right, voter, outcome)), occurrence)
        row = np.arange(300)
        rows = RowContent(mix(context[canon]), key, np.ones(300, dtype=np.bool_))
        votes = Votes(row, left[canon], right[canon], outcome[canon], np.ones(300), voter[canon], pi[canon])
        fold = assign_folds(rows, 5, by="context").fold
        sample = Sample(4, TERNARY, votes, context[canon], fold, context[canon])
        scores = estimate(sample, Case(sample, table).mu, BUILT_IN, clustering=Clustering("both"))
        return [
            array for each in scores.values() for array in (each.every.estimate.value, each.every.estimate.covariance)
        ]

    first, second = snapshot(np.arange(300)), snapshot(rng.permutation(300))
    for one, other in zip(first, second, strict=True):
        assert one.tobytes() == other.tobytes()
