"""Propensities: frequencies, eligibility, exclusions, weights within a row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from app.stats.debias import (
    Clustering,
    Exposure,
    KeptRates,
    Labels,
    Target,
    corrected_for_exclusions,
    eligibility_share,
    eligible_rows,
    estimated_propensities,
    first_of_event,
    one_step,
    used_propensities,
    vote_weights,
)
from app.stats.debias.propensity import Unit, exposure_counts
from app.stats.gars import Borda, Graph
from app.stats.types import Bools, Floats, Ints, Sample, Votes
from tests.stats.debias_samples import TERNARY, Case

OFF = ~np.eye(4, dtype=bool)


def battles(rng: np.random.Generator, n_rows: int, chance: Floats) -> Labels:
    """One ordered pair a row, drawn by `chance` (K, K)."""
    drawn = rng.choice(chance.size, size=n_rows, p=chance.ravel())
    return Labels(np.arange(n_rows), *np.divmod(drawn, chance.shape[0]))


def uneven(rng: np.random.Generator, n_items: int) -> Floats:
    chance = rng.dirichlet(np.full(n_items * n_items, 5.0)).reshape(n_items, n_items)
    np.fill_diagonal(chance, 0.0)
    return chance / chance.sum()


def test_votes_on_a_pair_of_an_offer_are_averaged_and_offers_too() -> None:
    offer = np.array([7, 7, 7, 9, 9])
    left, right = np.array([0, 0, 1, 0, 1]), np.array([1, 1, 0, 1, 2])
    weights = vote_weights(offer, left, right, offers_of_row=np.array([2, 2, 2, 1, 1]))
    np.testing.assert_array_equal(weights, [0.25, 0.25, 0.5, 1.0, 1.0])
    assert first_of_event(offer, left, right).tolist() == [0, 2, 3, 4]


def test_frequencies_on_a_battle_board_are_the_chances_and_sum_to_one() -> None:
    rng = np.random.default_rng(0)
    chance = uneven(rng, 4)
    pi = estimated_propensities(
        battles(rng, 40_000, chance),
        Exposure.always(40_000, 4),
        fold=rng.integers(0, 5, 40_000),
        n_folds=5,
        unit="battle",
    )
    np.testing.assert_allclose(pi.sum(axis=(1, 2)), 1.0)
    np.testing.assert_allclose(pi[:, OFF], np.broadcast_to(chance[OFF], (5, 12)), rtol=0.1)


def test_rows_that_showed_other_items_are_not_handed_to_the_pairs_that_are_left() -> None:
    """Half of the rows showed a retired item: each pair's chance is half of what it is among the others."""
    rng = np.random.default_rng(3)
    chance = uneven(rng, 4)
    found = battles(rng, 20_000, chance)
    pi = estimated_propensities(found, Exposure.always(40_000, 4), fold=np.arange(40_000) % 5, n_folds=5, unit="battle")
    np.testing.assert_allclose(pi.sum(axis=(1, 2)), 0.5, rtol=0.01)


def test_rare_pairs_are_shrunk_to_exposure_when_the_draw_is_uniform() -> None:
    """K = 60 and 1000 battles: frequencies are 0 or at least 3.5 times the chance."""
    rng = np.random.default_rng(1)
    chance = np.where(np.eye(60, dtype=bool), 0.0, 1 / 3540)
    labels = battles(rng, 1000, chance)
    pi = estimated_propensities(labels, Exposure.always(1000, 60), fold=np.arange(1000) % 5, n_folds=5, unit="battle")
    seen = pi[0, labels.left, labels.right] * 3540
    assert 0.8 < np.median(seen) < 1.5
    assert seen.max() < 6


def test_frequencies_are_believed_when_pairs_scatter() -> None:
    """A matchmaker that shows a third of the pairs: those keep their frequency, the others next to nothing."""
    rng = np.random.default_rng(2)
    shown = np.triu(rng.random((30, 30)) < 0.33, 1)
    chance = (shown | shown.T) / (2 * shown.sum())
    pi = estimated_propensities(
        battles(rng, 50_000, chance), Exposure.always(50_000, 30), fold=np.arange(50_000) % 5, n_folds=5, unit="battle"
    )[0]
    assert abs(np.mean(pi[chance > 0] / chance[chance > 0]) - 1.0) < 0.03
    off = (chance == 0) & ~np.eye(30, dtype=bool)
    assert pi[off].max() < 0.2 * chance.max()
    assert pi[off].min() > 0.05 / 870


def test_folds_do_not_see_their_own_rows() -> None:
    labels = Labels(np.arange(4), np.array([0, 0, 0, 1]), np.array([1, 1, 1, 0]))
    pi = estimated_propensities(labels, Exposure.always(4, 2), fold=np.array([0, 0, 1, 1]), n_folds=2, unit="battle")
    assert pi[0, 0, 1] == pytest.approx(0.5)
    assert pi[1, 0, 1] > 0.9


def test_context_boards_count_labelled_offers() -> None:
    """Row 0 has three offers, one with (0, 1); rows 1 and 2 have one offer each, row 1 labelled."""
    exposure = Exposure(np.array([0, 0, 0, 1, 2]), np.zeros(5, dtype=np.int64), np.ones((1, 2), dtype=np.bool_), 3)
    labels = Labels(np.array([0, 1]), np.array([0, 0]), np.array([1, 1]))
    pi = estimated_propensities(labels, exposure, fold=np.zeros(3, dtype=np.int64), n_folds=1, unit="context")
    assert pi[0, 0, 1] == pytest.approx(2 / 5)


@pytest.mark.parametrize("unit", ["battle", "context"])
def test_small_samples_give_finite_propensities(unit: Unit) -> None:
    for n_rows in (0, 1, 2, 3):
        labels = Labels(np.arange(n_rows), np.zeros(n_rows, dtype=np.int64), np.ones(n_rows, dtype=np.int64))
        pi = estimated_propensities(
            labels, Exposure.always(n_rows, 4), fold=np.zeros(n_rows, dtype=np.int64), n_folds=5, unit=unit
        )
        assert np.isfinite(pi).all()
        assert (pi >= 0).all()
        assert (pi <= 1).all()
        if n_rows:
            assert (pi[:, OFF] > 0).all()


def late_joiner() -> Exposure:
    active = np.array([[True, True, False], [True, True, True]])
    return Exposure.of_rows(np.repeat([0, 1], [30, 10]), active)


def test_eligibility_counts_rows_in_which_both_were_active() -> None:
    exposure = late_joiner()
    np.testing.assert_array_equal(eligible_rows(exposure), [[0, 40, 10], [40, 0, 10], [10, 10, 0]])
    share = eligibility_share(exposure)
    assert share[0, 2] == 0.25
    newer = eligibility_share(exposure.take(np.arange(40) >= 20))
    assert newer[0, 2] == 0.5
    used = used_propensities(np.array([0.2, 0.2]), share, left=np.array([0, 0]), right=np.array([1, 2]))
    np.testing.assert_allclose(used, [0.2, 0.05])


def test_a_row_is_eligible_by_the_share_of_its_offers() -> None:
    """Row 0 had an offer before item 2 came and three after; row 1 one before."""
    active = np.array([[True, True, False], [True, True, True]])
    exposure = Exposure(np.array([0, 0, 0, 0, 1]), np.array([0, 1, 1, 1, 0]), active, 2)
    np.testing.assert_allclose(eligible_rows(exposure), [[0, 2, 0.75], [2, 0, 0.75], [0.75, 0.75, 0]])


def test_late_joiner_frequencies_count_the_share_once() -> None:
    """pi × share is the pair's share of all offers: what the estimator divides by sums to 1."""
    exposure = late_joiner()
    item = np.arange(40) % 2
    rival = np.where(exposure.group == 0, 1 - item, 2)
    swapped = np.arange(40) % 4 < 2
    labels = Labels(np.arange(40), np.where(swapped, rival, item), np.where(swapped, item, rival))
    pi = estimated_propensities(labels, exposure, fold=np.zeros(40, dtype=np.int64), n_folds=1, unit="battle")[0]
    used = pi * eligibility_share(exposure)
    assert used.sum() == pytest.approx(1.0)
    assert used[0, 2] + used[2, 0] == pytest.approx(5 / 40, rel=0.2)


def test_exposure_keeps_the_margins() -> None:
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 50, (5, 5)).astype(float)
    np.fill_diagonal(counts, 0.0)
    expected = exposure_counts(counts, np.where(np.eye(5), 0.0, 100.0))
    np.testing.assert_allclose(expected.sum(axis=0), counts.sum(axis=0), rtol=1e-9)
    np.testing.assert_allclose(expected.sum(axis=1), counts.sum(axis=1), rtol=1e-9)


def test_kept_rates_known_answer() -> None:
    labels = Labels(np.arange(1000), np.repeat([0, 1], 500), np.repeat([1, 0], 500))
    kept = np.concatenate([np.arange(500) % 2 == 0, np.ones(500, dtype=np.bool_)])
    rates = KeptRates.of(labels, kept, 2)
    assert rates.overall == 0.75
    np.testing.assert_allclose(rates.pair[[0, 1], [1, 0]], [0.5, 1.0], atol=1e-3)
    ask = {"left": np.array([0, 1]), "right": np.array([1, 0])}
    logged = np.array([0.5, 0.5])
    np.testing.assert_allclose(corrected_for_exclusions(logged, rates, unit="battle", **ask), [1 / 3, 2 / 3], atol=1e-3)
    np.testing.assert_allclose(corrected_for_exclusions(logged, rates, unit="context", **ask), [0.25, 0.5], atol=1e-3)


@pytest.mark.parametrize("unit", ["battle", "context"])
def test_exclusions_that_depend_on_the_pair_leave_borda_unbiased_once_corrected(unit: Unit) -> None:
    rng = np.random.default_rng(4)
    truth = rng.dirichlet(np.ones(3), size=(1, 1, 3, 3))
    keep = np.where(np.eye(3), 0.0, np.array([[0, 0.9, 0.3], [0.5, 0, 1.0], [0.8, 0.4, 0]]))
    corrected, ignored = [], []
    for _ in range(150):
        labels = battles(rng, 1500, np.where(np.eye(3), 0.0, 1 / 6))
        kept = rng.random(1500) < keep[labels.left, labels.right]
        left, right = labels.left[kept], labels.right[kept]
        pi = corrected_for_exclusions(
            np.full(left.size, 1 / 6), KeptRates.of(labels, kept, 3), left=left, right=right, unit=unit
        )
        outcome = (rng.random((left.size, 1)) > np.cumsum(truth[0, 0, left, right], axis=1)).sum(axis=1).clip(0, 2)
        corrected.append(_borda(labels.row[kept], (left, right, outcome), pi, kept if unit == "battle" else None))
        ignored.append(_borda(labels.row[kept], (left, right, outcome), pi * 0 + 1 / 6, None))
    exact = Borda().value(TERNARY.scores(truth[0]), Graph.complete(3))[0]
    error = np.std(corrected, axis=0) / np.sqrt(150)
    assert (np.abs(np.mean(corrected, axis=0) - exact) < 4 * error).all()
    assert (np.abs(np.mean(ignored, axis=0) - exact) > 8 * error).any()


def _borda(row: Ints, cells: tuple[Ints, Ints, Ints], pi: Floats, kept: Bools | None) -> Floats:
    """Borda with a flat mu; on battle boards the excluded offers are no rows."""
    n_rows = 1500
    if kept is not None:
        row, n_rows = (np.cumsum(kept) - 1)[row], int(kept.sum())
    zero = np.zeros(n_rows, dtype=np.int64)
    votes = Votes(row, *cells, np.ones(row.size), np.arange(row.size), pi)
    sample = Sample(3, TERNARY, votes, np.arange(n_rows), zero, zero)
    flat = Case(sample, np.full((1, 1, 3, 3, 3), 1 / 3))
    return one_step(sample, flat.mu, {0: Target(Borda(), Graph.complete(3))}, clustering=Clustering())[0].estimate.value


def test_exposure_of_a_mask_is_that_of_its_rows() -> None:
    exposure = late_joiner()
    part = exposure.take(exposure.group == 1)
    assert replace(part, active=part.active[1:]).group.size == 10
    np.testing.assert_array_equal(eligible_rows(part)[0], [0, 10, 10])
