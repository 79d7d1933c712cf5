"""Games that a refit finds, against slow twins on few rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.domain.boards import BoardConfig
from app.domain.exclusions import SUPERSEDED
from app.services.refit import parts
from app.services.refit.crew.ports import IN_TURN
from app.services.refit.crew.processes import Processes
from app.services.refit.features import covariates_of, levels_of
from app.services.refit.fit import refit
from app.services.refit.frame import Frame, frame_of
from app.services.refit.games.ballots import Ballots, ballots_of
from app.services.refit.games.contest import Contest, linked
from app.services.refit.games.means import Behind, mean_payoffs, pack_means, unpack_means
from app.services.refit.games.router import pack_router, unpack_router
from app.services.refit.games.rows import corrections_of, drawn
from app.services.refit.inputs import Inputs, RankingTable
from app.services.refit.menus import with_pairs
from app.services.refit.snapshot import digest
from app.services.refit.storage import Stored
from app.stats.feedback import (
    OUTSIDE,
    MenuSample,
    MenuVotes,
    corrections,
    estimated_propensities,
    menus_of,
    uniform,
)
from app.stats.feedback import mean_payoffs as mean_of_rows
from app.stats.types import Floats, Ints
from tests.benchmarks.boards import Size

SIZE = Size(300, 4, 2)


def fair(fold: int, patterns: Ints) -> Floats:
    """(u, 4, 4, 4) probabilities that know no sides, other ones in each fold."""
    utility = np.sin(np.outer(patterns + 1.0, np.arange(1.0, 5.0)) + fold)
    ahead = 1.0 / (1.0 + np.exp(utility[:, None, :] - utility[:, :, None]))
    return np.stack([0.7 * ahead, 0.7 * (1.0 - ahead), np.full(ahead.shape, 0.2), np.full(ahead.shape, 0.1)], axis=-1)


@pytest.fixture(scope="module")
def frame() -> Frame:
    return frame_of(SIZE.inputs(), SIZE.config)


def as_menus(frame: Frame) -> MenuSample:
    """Votes on pairs as votes on menus of two, both orders counting half."""
    sample, votes = frame.view(), frame.view().votes
    tiers = np.full((len(votes), 4), OUTSIDE, dtype=np.int16)
    each = np.arange(len(votes))
    tiers[each, votes.left], tiers[each, votes.right] = votes.outcome == 1, votes.outcome == 0
    menus, menu = menus_of(tiers)
    assert len(menus.members) == 6
    on = MenuVotes(votes.row, menu, tiers, votes.weight, 2.0 * votes.propensity)
    return MenuSample(menus, on, sample.fold, sample.pattern, sample.context)


def margins_of(sample: MenuSample) -> Floats:
    _, first, second = sample.menus.cells
    rows = [fair(int(fold), np.array([pattern]))[0] for fold, pattern in zip(sample.fold, sample.pattern, strict=True)]
    mu = np.stack(rows)
    return mu[:, first, second, 0] - mu[:, first, second, 1]


def test_corrections_are_those_of_menus_of_two(frame: Frame) -> None:
    view = frame.view()
    _, contest = linked(view)
    found = corrections_of(view, fair, contest)
    sample = as_menus(frame)
    slow = corrections(sample, margins_of(sample), uniform(sample.menus))
    for name in ("start", "slope", "weight", "excess"):
        np.testing.assert_allclose(getattr(found, name), getattr(slow, name), atol=1e-9, err_msg=name)


def test_mean_payoffs_are_means_of_pseudo_outcomes_with_clustered_errors(frame: Frame) -> None:
    found = mean_payoffs(frame, fair, "", None, consistent=True)
    sample = as_menus(frame)
    slow = mean_of_rows(corrections(sample, margins_of(sample), uniform(sample.menus)).pseudo_outcomes, sample.context)
    np.testing.assert_allclose(found.value, slow.value, atol=1e-9)
    np.testing.assert_allclose(found.error, slow.standard_error, atol=1e-9)
    assert found.status == "ok"
    assert found.behind == (300, 300, 300, 300)
    assert found.votes.sum() == 300


def test_an_order_that_is_never_shown_does_not_count() -> None:
    contest = Contest(np.array([0, 2]), np.array([1.0]), np.array([1.0, -1.0]))
    leads = np.zeros((1, 3, 3))
    leads[0, 0, 2], leads[0, 2, 0] = 0.5, 0.9
    np.testing.assert_allclose(contest.payoffs(leads), [[0.5]])
    np.testing.assert_allclose(replace(contest, ahead=np.array([0.5])).payoffs(leads), [[-0.2]])
    np.testing.assert_array_equal(contest.numbers(3), [[-1, -1, 0], [-1, -1, -1], [0, -1, -1]])


def test_what_has_few_votes_says_so(frame: Frame) -> None:
    few = np.zeros(frame.sample.n_rows, dtype=np.bool_)
    few[:25] = True
    found = mean_payoffs(frame, fair, "a:b", few, consistent=True)
    assert (found.status, found.behind.rows) == ("few_contexts", 25)
    assert mean_payoffs(frame, fair, "", None, consistent=False).status == "propensities_inconsistent"
    none = mean_payoffs(frame, fair, "", ~frame.sample.fold.astype(np.bool_) & False, consistent=True)
    assert (none.status, none.players.size) == ("few_votes", 0)


def test_means_come_back_from_bytes(frame: Frame) -> None:
    few = np.arange(frame.sample.n_rows) < 60
    kept = [mean_payoffs(frame, fair, name, rows, consistent=True) for name, rows in (("", None), ("a:b", few))]
    kept[1] = replace(kept[1], behind=Behind(4, 3, 2, 1))
    found = unpack_means(pack_means(kept))
    assert list(found) == ["", "a:b"]
    for each in kept:
        again = found[each.segment]
        assert (again.status, again.behind) == (each.status, each.behind)
        for name in ("players", "value", "error", "votes"):
            np.testing.assert_array_equal(getattr(again, name), getattr(each, name))


def test_rows_drawn_keep_the_propensities_of_all(frame: Frame) -> None:
    view = frame.view()
    part = drawn(view, 100)
    assert (part.n_rows, len(part.votes)) == (100, 100)
    assert set(part.votes.propensity.tolist()) <= set(view.votes.propensity.tolist())
    assert drawn(view, 300) is view


def ranked(inputs: Inputs, *, propensity: float = np.nan, reason: Ints | None = None) -> Inputs:
    """The board with rankings of three of its items by every third context."""
    rng, size = np.random.default_rng(5), 100
    ids = inputs.votes.ids.max() + 1 + np.arange(size)
    tiers = np.full((size, 4), OUTSIDE, dtype=np.int16)
    for row in tiers:
        row[rng.permutation(4)[:3]] = np.arange(3)
    zero = np.zeros(size, dtype=np.int64)
    chance = np.full(size, propensity)
    table = RankingTable(ids, inputs.contexts.ids[1:301:3], zero, tiers, zero, chance, zero, zero - 1)
    return replace(inputs, rankings=table if reason is None else replace(table, reason=reason))


def ballots(inputs: Inputs, config: BoardConfig) -> Ballots:
    known = with_pairs(inputs, config)
    covariates, _ = covariates_of(known, config)
    found = ballots_of(known, config, Stored(frame_of(known, config), covariates, levels_of(known, config)))
    assert found is not None
    return found


@pytest.fixture
def _menus_of_few_votes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.services.refit.games.ballots.LEAST_VOTES", 1)


few_votes_count = pytest.mark.usefixtures("_menus_of_few_votes_count")


@few_votes_count
def test_pairs_and_rankings_are_votes_on_menus() -> None:
    sample = ballots(ranked(SIZE.inputs()), SIZE.config).sample
    assert len(sample.votes) == 400
    sizes = sample.menus.members.sum(axis=1)
    assert (sizes == 2).sum() == 6
    assert (sizes == 3).sum() == 4
    assert np.unique(sample.fold).size == 3
    np.testing.assert_allclose(sample.votes.propensity, estimated_propensities(sample))
    pairs = sample.votes.tiers[sizes[sample.votes.menu] == 2]
    votes = SIZE.inputs().votes
    won = np.concatenate([votes.left[votes.outcome == 0], votes.right[votes.outcome == 1]])
    np.testing.assert_array_equal(((pairs == 0) & (pairs == 1).any(axis=1)[:, None]).sum(axis=0), np.bincount(won))
    said = sample.votes.tiers[sizes[sample.votes.menu] == 3]
    np.testing.assert_array_equal(np.sort(said, axis=1), np.tile([-1, 0, 1, 2], (100, 1)))


def only_rankings(**more: Any) -> Inputs:
    inputs = ranked(SIZE.inputs(), **more)
    return replace(inputs, votes=inputs.votes.take(np.arange(0)))


def test_logged_chances_of_menus_are_used_and_corrected_for_exclusions() -> None:
    logged = replace(SIZE.config, propensity="logged")
    sample = ballots(only_rankings(propensity=0.25), logged).sample
    np.testing.assert_allclose(sample.votes.propensity, 0.25)
    reason = np.full(100, -1)
    reason[::4] = 0
    inputs = replace(only_rankings(propensity=0.25, reason=reason), reasons=("bot",))
    context = ballots(inputs, replace(logged, unit="context")).sample
    assert len(context.votes) == 75
    assert context.votes.propensity.mean() == pytest.approx(0.25 * 0.75, rel=0.05)
    battle = ballots(inputs, logged).sample
    assert battle.votes.propensity.mean() == pytest.approx(0.25, rel=0.05)
    again = ballots(replace(inputs, reasons=(SUPERSEDED,)), replace(logged, unit="context")).sample
    np.testing.assert_allclose(again.votes.propensity, 0.25)


@few_votes_count
def test_chances_of_pairs_with_exclusions_are_estimated() -> None:
    inputs = ranked(SIZE.inputs(), propensity=0.25)
    sent = replace(inputs.votes, propensity=np.full(300, 1 / 12))
    logged = ballots(replace(inputs, votes=sent), SIZE.config).sample
    np.testing.assert_allclose(np.unique(logged.votes.propensity), [1 / 6, 0.25])
    reason = np.where(np.arange(300) < 9, 0, -1)
    lost = replace(inputs, votes=replace(sent, reason=reason), reasons=("bot",))
    sample = ballots(lost, SIZE.config).sample
    np.testing.assert_allclose(sample.votes.propensity, estimated_propensities(sample))


def test_rankings_of_which_one_item_is_left_are_played_by_nobody() -> None:
    inputs = only_rankings()
    alone = replace(inputs, roster=replace(inputs.roster, active=np.array([True, False, False, False])))
    found = ballots(alone, SIZE.config)
    assert (found.players.size < 2, len(found.sample.votes)) == (True, 0)


def test_pairs_on_no_menu_are_left_to_the_models() -> None:
    inputs = only_rankings()
    assert inputs.rankings is not None
    here = (inputs.rankings.tiers[:, [0, 1]] != OUTSIDE).sum(axis=1) < 2
    sample = ballots(replace(inputs, rankings=inputs.rankings.take(here)), SIZE.config).sample
    assert sample.menus.shown.all()
    alone = np.flatnonzero(sample.menus.members.sum(axis=1) == 2)
    assert sample.menus.members[alone].tolist() == [[True, True, False, False]]
    assert not np.isin(sample.votes.menu, alone).any()


@few_votes_count
def test_rankings_are_played_alike_by_two_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = with_pairs(ranked(SIZE.inputs()), SIZE.config)
    one = refit(inputs, SIZE.config, crew=IN_TURN)
    monkeypatch.setattr(parts, "WORTH_PROCESSES", 0)
    two = refit(inputs, SIZE.config, crew=Processes(2))
    assert digest(one) == digest(two)
    assert one.router == two.router
    assert one.router is not None
    router = unpack_router(one.router)
    assert router.menus is not None
    assert len(router.menus.models) == 3
    assert pack_router(router) == one.router
    assert one.means[0].behind.votes == 400


def test_menus_beyond_a_number_are_taken_as_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = with_pairs(ranked(SIZE.inputs()), SIZE.config)
    monkeypatch.setattr("app.services.refit.games.ballots.MOST_MENUS", 5)
    found = refit(inputs, SIZE.config)
    assert found.router is not None
    assert unpack_router(found.router).menus is None
    assert found.means[0].behind.votes == 600
