"""The balance check: silent on sound boards of any size, loud on its controls."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.stats.debias import check_balance, drawable_pairs, segment
from app.stats.types import Bools, Floats, Ints, Sample, Votes
from tests.stats.debias_samples import TERNARY


def board(rng: np.random.Generator, n_items: int, n_rows: int, *, labelled: float = 1.0) -> Sample:
    """One ordered pair a row, chances that depend on the row's pattern; a share of the rows has a label."""
    off = ~np.eye(n_items, dtype=bool)
    chance = np.zeros((2, n_items, n_items))
    chance[:, off] = rng.dirichlet(np.full(off.sum(), 5.0), size=2) * 0.5 + 0.5 / off.sum()
    pattern = rng.integers(0, 2, n_rows)
    drawn = np.empty(n_rows, dtype=np.int64)
    for each in (0, 1):
        drawn[pattern == each] = rng.choice(n_items**2, size=(pattern == each).sum(), p=chance[each].ravel())
    row = np.flatnonzero(rng.random(n_rows) < labelled)
    left, right = np.divmod(drawn[row], n_items)
    return sample_of(n_items, n_rows, (row, left, right), labelled * chance[pattern[row], left, right])


def sample_of(n_items: int, n_rows: int, cells: tuple[Ints, Ints, Ints], pi: Floats) -> Sample:
    size = pi.size
    votes = Votes(*cells, np.zeros(size, dtype=np.int64), np.ones(size), np.arange(size), pi)
    zero = np.zeros(n_rows, dtype=np.int64)
    return Sample(n_items, TERNARY, votes, np.arange(n_rows), zero, zero)


def every_pair(n_items: int) -> Bools:
    return ~np.eye(n_items, dtype=np.bool_)


def rings(sample: Sample) -> bool:
    return not check_balance(sample, every_pair(sample.n_items)).consistent


@pytest.mark.parametrize(
    ("n_items", "n_rows", "labelled"),
    [(60, 1000, 1.0), (2, 300, 1.0), (2, 30, 0.6), (5, 100, 1.0), (5, 1000, 0.5), (20, 2000, 1.0), (20, 20_000, 0.9)],
)
def test_false_alarms_are_rare_and_halved_propensities_ring(n_items: int, n_rows: int, labelled: float) -> None:
    rng = np.random.default_rng(n_items * n_rows)
    runs = 200 if n_rows < 5000 else 50
    alarms = halved = 0
    for _ in range(runs):
        sample = board(rng, n_items, n_rows, labelled=labelled)
        alarms += rings(sample)
        votes = replace(sample.votes, propensity=sample.votes.propensity / 2)
        halved += rings(replace(sample, votes=votes))
    # At most 3% of runs, with room for the 200 of them.
    assert alarms <= 0.03 * runs + 3
    assert halved >= (0.99 if n_rows >= 100 else 0.3) * runs


def test_offers_without_votes_that_were_never_sent_ring() -> None:
    rng = np.random.default_rng(1)
    sample = board(rng, 6, 2000, labelled=0.7)
    assert not rings(sample)
    sent = np.zeros(2000, dtype=np.bool_)
    sent[sample.votes.row] = True
    assert rings(segment(sample, sent, propensity=sample.votes.propensity))


def test_votes_excluded_without_correction_ring() -> None:
    rng = np.random.default_rng(2)
    sample = board(rng, 6, 4000)
    kept = (sample.votes.left != 3) | (rng.random(4000) < 0.6)
    assert rings(segment(sample, kept, propensity=sample.votes.propensity))


def test_groups_are_frequent_pairs_pooled_rest_and_all() -> None:
    left = np.repeat([0, 0, 1], [30, 5, 10])
    right = np.repeat([1, 2, 0], [30, 5, 10])
    balance = check_balance(sample_of(3, 45, (np.arange(45), left, right), np.full(45, 1 / 6)), every_pair(3))
    found = {(int(j), int(k)): int(size) for (j, k), size in zip(balance.members, balance.pairs, strict=True)}
    assert found == {(0, -1): 1, (1, -1): 2, (0, 1): 1, (-1, -1): 6}
    # T of (0, 1) is 6 on 30 of 45 rows: mean 4, se² = (6 - 1) / 45.
    at = balance.members.tolist().index([0, 1])
    assert balance.z[at] == pytest.approx(3 / np.sqrt(5 / 45))
    assert balance.threshold == 4.0
    assert not balance.consistent


def test_no_votes_and_three_votes_are_silent() -> None:
    none = np.zeros(0, dtype=np.int64)
    assert not rings(sample_of(3, 5, (none, none, none), np.zeros(0)))
    three = np.arange(3)
    balance = check_balance(sample_of(3, 3, (three, three, (three + 1) % 3), np.full(3, 1 / 6)), every_pair(3))
    assert balance.consistent
    assert np.isfinite(balance.z).all()


def test_pairs_that_exposure_rules_out_are_not_drawable() -> None:
    """Items 0-2 meet 3-5 only; between items of one side some 100 votes are missing."""
    rng = np.random.default_rng(3)
    near, far = rng.integers(0, 3, 2000), rng.integers(3, 6, 2000)
    swap = rng.random(2000) < 0.5
    cells = (np.arange(2000), np.where(swap, far, near), np.where(swap, near, far))
    sample = sample_of(6, 2000, cells, np.full(2000, 1 / 18))
    offers = np.where(np.eye(6), 0.0, 2000.0)
    drawable = drawable_pairs(sample, offers)
    assert drawable.sum() == 18
    assert check_balance(sample, drawable).consistent
    assert rings(sample)
    known = replace(sample, possible=every_pair(6))
    assert drawable_pairs(known, offers).sum() == 30
