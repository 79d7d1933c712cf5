"""Votes to flip: a slow twin, confirmation by dropping the votes, and what a bounded memory must not change."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.stats.debias import Clustering, Target, one_step
from app.stats.debias.flips import Flip, Parts, fewest, votes_to_flip
from app.stats.debias.influence import influence_of, influence_rows
from app.stats.debias.segments import segment
from app.stats.gars import Borda, BradleyTerry, Estimand, Graph, RankCentrality
from app.stats.types import Floats, Ints
from tests.stats.debias_samples import Case, random_case, slow_parts

ESTIMANDS = (Borda(), BradleyTerry(), RankCentrality())


def complete(size: int) -> Graph:
    order = np.where(np.eye(size, dtype=bool), 0.0, 0.5)
    return Graph(order, np.ones(size, dtype=bool))


def slow_flip(case: Case, target: Target, *, by_row: bool) -> tuple[int, int, int] | None:
    """Leader, challenger and votes, by dropping one unit after the other for each rival."""
    values, corrections = slow_parts(case.sample, case.mu, target)
    psi = values.copy()
    np.add.at(psi, case.sample.votes.row, corrections)
    score = psi.mean(axis=0)
    leader = int(score.argmax())
    held = sorted(set(case.sample.votes.row.tolist()))
    units = (
        [(psi[row], (case.sample.votes.row == row).sum()) for row in held] if by_row else [(c, 1) for c in corrections]
    )
    found = []
    for rival in np.argsort(-score):
        gap, gone = (psi[:, leader] - psi[:, rival]).sum(), 0
        for unit, votes in sorted(units, key=lambda unit: unit[0][rival] - unit[0][leader]) if rival != leader else []:
            gap, gone = gap - (unit[leader] - unit[rival]), gone + int(votes)
            if gap < -1e-9 * len(psi):
                found.append((gone, int(rival)))
                break
    if not found:
        return None
    votes, challenger = min(found, key=lambda each: each[0])
    return leader, challenger, votes


def fast_flip(case: Case, target: Target, *, by_row: bool) -> Flip | None:
    value = one_step(case.sample, case.mu, {"": target}, clustering=Clustering())[""].estimate.value
    influence = influence_of(case.sample, case.mu, {"": target})[""]
    return votes_to_flip(influence, value, by_row=by_row)


@pytest.mark.parametrize("estimand", ESTIMANDS, ids=lambda each: each.name)
@pytest.mark.parametrize("battle", [True, False])
def test_it_is_what_dropping_one_after_the_other_finds(estimand: Estimand, battle: bool) -> None:
    target, seen = Target(estimand, complete(4)), 0
    for seed in range(6):
        case = random_case(np.random.default_rng(seed), n_items=4, n_rows=60, battle=battle)
        found, expected = fast_flip(case, target, by_row=battle), slow_flip(case, target, by_row=battle)
        assert (None if found is None else (found.leader, found.challenger, found.votes)) == expected
        seen += found is not None
    assert seen >= 3


@pytest.mark.parametrize("estimand", ESTIMANDS, ids=lambda each: each.name)
def test_without_these_votes_the_challenger_leads_and_with_one_of_them_it_does_not(estimand: Estimand) -> None:
    target = Target(estimand, complete(4))
    case = random_case(np.random.default_rng(1), n_items=4, n_rows=200, battle=True)
    sample, found = case.sample, fast_flip(case, target, by_row=True)
    assert found is not None
    psi = np.zeros((sample.n_rows, 4))
    for rows in influence_rows(sample, case.mu, target):
        psi[rows.row] = rows.psi
    gain = psi[:, found.leader] - psi[:, found.challenger]
    gain[np.bincount(sample.votes.row, minlength=sample.n_rows) == 0] = -np.inf
    order = np.argsort(-gain)
    for dropped, leads in ((found.votes, True), (found.votes - 1, False)):
        kept = np.ones(sample.n_rows, dtype=bool)
        kept[order[:dropped]] = False
        rest = segment(sample, kept, propensity=sample.votes.propensity)
        score = one_step(rest, case.mu, {"": target}, clustering=Clustering())[""].estimate.value
        assert (score[found.challenger] > score[found.leader]) == leads
        # Whoever leads then, it is not the former leader.
        assert (int(score.argmax()) != found.leader) == leads


def passes(psi: Floats, votes: Ints, *, chunk: int = 7) -> Iterator[Parts]:
    for start in range(0, len(psi), chunk):
        yield Parts(votes[start : start + chunk], psi[start : start + chunk])


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 2**32 - 1), held=st.integers(1, 60), lead=st.sampled_from([0.0, 0.5, 2.0]))
def test_little_room_changes_nothing(seed: int, held: int, lead: float) -> None:
    rng = np.random.default_rng(seed)
    psi = rng.standard_t(2, size=(80, 5)) + lead * np.arange(5)
    votes = rng.integers(0, 2, 80) * rng.integers(1, 30, 80)
    value = psi.mean(axis=0)
    found = [
        fewest(lambda: passes(psi, votes), value, units=int((votes > 0).sum()), tie=1e-9, held=each)
        for each in (held, 10_000)
    ]
    assert found[0] == found[1]


def test_a_rival_with_many_small_gains_may_need_fewer_votes_than_one_with_a_large_gain() -> None:
    # One row of 30 votes decides against the second item, two rows of one vote each against the third.
    psi = -np.array([[0.0, 10.0, 0.0], [0.0, 0.0, 3.0], [0.0, 0.0, 3.0], [0.0, -2.0, -1.0]])
    votes = np.array([30, 1, 1, 0])
    for held in (2, 100):
        assert fewest(lambda: passes(psi, votes), psi.mean(axis=0), units=3, tie=0.0, held=held) == Flip(0, 2, 2)


def test_known_answers() -> None:
    ones = np.ones(4, dtype=np.int64)
    psi = np.array([[3.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.5]])
    assert fewest(lambda: passes(psi, ones), psi.mean(axis=0), units=4, tie=0.0) == Flip(0, 1, 1)
    # A row without a vote cannot be dropped, and a row takes all its votes along.
    assert fewest(lambda: passes(psi, ones * np.array([0, 1, 1, 1])), psi.mean(axis=0), units=3, tie=0.0) is None
    assert fewest(lambda: passes(psi, ones * np.array([5, 1, 1, 1])), psi.mean(axis=0), units=4, tie=0.0) == Flip(
        0, 1, 5
    )
    # Nobody else has anything to win by.
    assert fewest(lambda: passes(psi[:2], ones[:2]), psi[:2].mean(axis=0), units=2, tie=0.0) is None


def test_a_lone_item_has_no_rival() -> None:
    case = random_case(np.random.default_rng(0), n_items=4, n_rows=60, battle=True)
    influence = influence_of(case.sample, case.mu, {"": Target(Borda(), complete(4))})[""]
    assert votes_to_flip(influence, np.ones(1), by_row=True) is None
