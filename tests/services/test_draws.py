"""Pairs drawn here as a refit sees them: rows, dates, exclusions, answers still out; small boards worked by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest

from app.domain.boards import Acquisition, BoardConfig
from app.services.refit.eligibility import exposure_of
from app.services.refit.frame import Frame, frame_of
from app.services.refit.inputs import OPEN, ContextTable, DrawTable, Inputs, OfferTable, Roster, VoteTable
from app.services.refit.population import Unit, populate
from app.services.refit.response import Responses
from app.stats.debias.propensity import eligibility_share

NAMES = ("a", "b", "c")
HOUR = 3_600_000_000
UNITS: tuple[Unit, ...] = ("battle", "context")


class Offer(NamedTuple):
    """An offer of a context at an hour, with (left, right, hour of the answer) of what was drawn for it."""

    context: int
    hour: float
    drawn: Sequence[tuple[int, int, float | None]] = ()
    here: bool = True


def board(
    *offers: Offer,
    contexts: int = 3,
    reason: Sequence[int] = (),
    ordinary: Sequence[tuple[int, int, int]] = (),
    start: float = 0.0,
) -> Inputs:
    """A board whose offers are numbered from 1 on; a vote answers each draw that has an hour, in order.

    Parameters
    ----------
    reason : of the exclusion of each vote, -1 where it counts.
    ordinary : (context, left, right) of further votes, on no offer.
    start : hour from which item c can be drawn.
    """
    draws = [(at, offer, *drawn) for at, offer in enumerate(offers, 1) for drawn in offer.drawn]
    rows = [(offer.context, at, left, right, hour) for at, offer, left, right, hour in draws if hour is not None]
    rows += [(context, 0, left, right, 50.0) for context, left, right in ordinary]
    columns = np.array(rows, dtype=np.float64).reshape(-1, 5).T
    context, offer, left, right = columns[:4].astype(np.int64)
    size = context.size
    table = VoteTable(
        *(np.arange(1, size + 1), context, offer, left, right),
        outcome=np.zeros(size, dtype=np.int64),
        voter=np.arange(1, size + 1),
        propensity=np.full(size, 0.2),
        created=(columns[4] * HOUR).astype(np.int64),
        reason=np.array(reason, dtype=np.int64) if reason else np.full(size, -1),
    )
    number, ids = np.arange(contexts + 1), np.arange(1, len(offers) + 1)
    made = (np.array([offer.hour for offer in offers]) * HOUR).astype(np.int64)
    answered = [OPEN if hour is None else int(hour * HOUR) for *_, hour in draws]
    here = np.array([offer.here for offer in offers], dtype=np.bool_)
    return Inputs(
        votes=table,
        reasons=("bot",) if reason else (),
        contexts=ContextTable(number, -7 * number, 0 * number, 0 * number, [{}]),
        offers=OfferTable(ids, np.array([offer.context for offer in offers]), -3 * ids, made, here),
        roster=Roster(
            *(np.arange(3), NAMES, np.ones(3, dtype=np.bool_), np.arange(3)),
            span_from=np.array([0, 0, int(start * HOUR)]),
            span_to=np.full(3, OPEN),
            label_cost=np.full(3, 0.5),
            cost=np.zeros(3),
        ),
        draws=DrawTable(
            *np.array([(at, left, right) for at, _, left, right, _ in draws]).T, answered=np.array(answered)
        ),
    )


def frame(inputs: Inputs, unit: Unit = "battle", *, acquisition: Acquisition | None = None) -> Frame:
    return frame_of(inputs, BoardConfig(unit=unit, acquisition=acquisition or Acquisition()))


@pytest.mark.parametrize("unit", UNITS)
def test_every_offer_counts_and_votes_share_it(unit: Unit) -> None:
    """Context 1 was offered twice, context 2 once without a pair, context 3 once with two."""
    offers = Offer(1, 1, [(0, 1, 2)]), Offer(1, 3), Offer(2, 1), Offer(3, 1, [(0, 1, 2), (1, 2, 2)])
    found = populate(board(*offers), unit)
    assert len(found.rows) == (4 if unit == "battle" else 3)
    assert found.offers.row.size == 4
    weight = dict(zip(zip(found.votes.offer, found.votes.left, strict=True), found.weight, strict=True))
    assert weight == {(1, 0): 1 if unit == "battle" else 0.5, (4, 0): 1, (4, 1): 1}
    assert np.unique(found.row).size == 2


@pytest.mark.parametrize("unit", UNITS)
def test_a_row_is_as_old_as_its_draw(unit: Unit) -> None:
    found = populate(board(Offer(1, 5, [(0, 1, 9)]), Offer(2, 6), Offer(3, 7, [(0, 1, 7.5)])), unit)
    hours = dict(zip(found.rows.context_id.tolist(), (found.rows.time / HOUR).tolist(), strict=True))
    assert hours == {1: 5, 2: 6, 3: 7}


@pytest.mark.parametrize("unit", UNITS)
def test_a_late_item_is_eligible_in_offers_made_after_it_came(unit: Unit) -> None:
    """An answer after the item's arrival does not make its offer a late one."""
    inputs = board(Offer(1, 1, [(0, 1, 30)]), Offer(2, 1), Offer(3, 11, [(0, 2, 12)]), start=10)
    share = eligibility_share(exposure_of(populate(inputs, unit), inputs.roster))
    assert share[0, 1] == 1
    assert share[0, 2] == pytest.approx(1 / 3)


@pytest.mark.parametrize("unit", UNITS)
def test_an_exclusion_leaves_the_row_of_a_draw(unit: Unit) -> None:
    offers = [Offer(context, 1, [(0, 1, 1)]) for context in (1, 2, 3)]
    excluded = frame(board(*offers, Offer(1, 1), reason=[0, -1, -1]), unit)
    assert excluded.sample.n_rows == (4 if unit == "battle" else 3)
    np.testing.assert_allclose(excluded.view().votes.propensity, 0.2 * (2 + 2 / 3) / 4)


@pytest.mark.parametrize("unit", UNITS)
def test_a_draw_whose_vote_was_superseded_elsewhere_stays_without_it(unit: Unit) -> None:
    inputs = board(Offer(1, 1, [(0, 1, 1)]), Offer(1, 2, [(0, 1, 2)]), reason=[0, -1], contexts=1)
    found = populate(replace(inputs, reasons=("superseded",)), unit)
    assert found.offers.row.size == 2
    assert found.held.mean() == 0.5


def test_draws_and_ordinary_votes_of_a_battle_board_have_kept_rates_of_their_own() -> None:
    """Half of the votes on draws are excluded, none of the others, and the other way round."""
    offers = Offer(1, 1, [(0, 1, 1)]), Offer(2, 1, [(0, 1, 1)])
    ordinary = [(3, 0, 1), (3, 1, 2)]
    lost_draw = frame(board(*offers, ordinary=ordinary, reason=[0, -1, -1, -1]))
    used = lost_draw.view().votes.propensity
    assert lost_draw.sample.n_rows == 4
    np.testing.assert_allclose(np.where(lost_draw.lasting, 0.1, 0.2), used)
    lost_vote = frame(board(*offers, ordinary=ordinary, reason=[-1, -1, 0, -1]))
    assert lost_vote.sample.n_rows == 3
    # One of the two ordered pairs is half gone, the other one makes up more of what is left.
    np.testing.assert_allclose(lost_vote.view().votes.propensity, np.where(lost_vote.lasting, 0.2, 0.2 * 0.75 / 0.5))


def test_a_policy_is_known_where_all_offers_are_draws_made_here() -> None:
    offers = Offer(1, 1, [(0, 1, 1)]), Offer(2, 1), Offer(3, 1)
    for unit in UNITS:
        assert frame(board(*offers), unit).view().possible is not None
        assert frame(board(*offers, ordinary=[(3, 0, 1)]), unit).view().possible is None
        assert frame(board(*offers[:2], offers[2]._replace(here=False)), unit).view().possible is None
        assert frame(board(*offers), unit, acquisition=Acquisition(floor=0.0)).view().possible is None
    assert frame(board(*offers, contexts=4), "context").view().possible is None


def test_pairs_are_possible_where_their_items_could_be_drawn() -> None:
    inputs = board(Offer(1, 1, [(0, 1, 2)]), Offer(2, 1), Offer(3, 11, [(0, 1, 12)]), start=10)
    found = frame(inputs)
    possible = found.view().possible
    assert possible is not None
    assert possible.tolist() == (~np.eye(3, dtype=np.bool_)).tolist()
    early = found.view(found.time < 10 * HOUR).possible
    assert early is not None
    assert np.argwhere(early).tolist() == [[0, 1], [1, 0]]


def test_answers_still_out_lower_the_propensities() -> None:
    """Of four draws of one age and pair two are answered, after one hour and three."""
    inputs = board(
        *(Offer(context, 0, [(0, 1, hour)]) for context, hour in enumerate((1, 3, None, None), 1)), contexts=4
    )
    np.testing.assert_allclose(Responses(inputs).by_now(inputs.votes), 0.5)
    np.testing.assert_allclose(frame(inputs).view().votes.propensity, 0.1)
    np.testing.assert_allclose(frame(inputs).view(np.array([True, False, True, False])).votes.propensity, 0.1)


def test_the_rate_is_that_of_the_draws_age() -> None:
    """Every second draw of ten hours ago has been answered, and every fourth of one hour ago."""
    old = [Offer(context, 0, [(0, 1, 1 if context % 2 else None)]) for context in range(1, 81)]
    young = [Offer(context, 9, [(0, 1, 10 if context % 4 == 0 else None)]) for context in range(81, 161)]
    inputs = board(*old, *young, contexts=160)
    rate = Responses(inputs).by_now(inputs.votes)
    np.testing.assert_allclose(rate, np.where(inputs.votes.offer <= 80, 0.5, 0.25), atol=1e-6)


def test_when_all_was_answered_in_one_go_all_counts_in_full() -> None:
    """Sixty draws of five hours and all of their answers in the last one."""
    offers = [Offer(context, context / 12, [(0, 1, 6)]) for context in range(1, 61)]
    inputs = board(*offers, contexts=60)
    np.testing.assert_array_equal(Responses(inputs).by_now(inputs.votes), 1)


@pytest.mark.parametrize("unit", UNITS)
def test_draws_too_young_for_any_answer_are_no_rows(unit: Unit) -> None:
    """Context 2 was offered again just now, and context 3 for the first time; 4 is registered as offered elsewhere."""
    offers = Offer(1, 1, [(0, 1, 2)]), Offer(2, 1), Offer(2, 9, [(0, 1, None)]), Offer(3, 9)
    found = frame(board(*offers, Offer(4, 9, here=False), contexts=4), unit)
    assert sorted(found.context_id.tolist()) == [1, 2, 4]
    assert found.exposure.row.size == 3
    unanswered = frame(board(*offers[1:], ordinary=[(1, 0, 1)], contexts=1), unit)
    assert unanswered.context_id.tolist() == [1]


def test_a_pair_drawn_once_counts_once_however_often_it_was_leased() -> None:
    """Two leases of each of two draws, one of them answered late; and two slots, both answered."""
    inputs = board(Offer(1, 0, [(0, 1, 5)]), Offer(2, 0, [(0, 1, None)]), Offer(3, 0, [(0, 1, 2)]))
    assert inputs.draws is not None
    lapsed = DrawTable(
        np.array([1, 2, 3]), np.zeros(3, np.int64), np.ones(3, np.int64), np.array([OPEN, OPEN, 4 * HOUR])
    )
    columns = ("offer", "left", "right", "answered")
    both = [np.concatenate([getattr(lapsed, name), getattr(inputs.draws, name)]) for name in columns]
    again = replace(inputs, draws=DrawTable(*both))
    expected = Responses(inputs).by_now(inputs.votes)
    np.testing.assert_allclose(expected, 2 / 3)
    np.testing.assert_array_equal(Responses(again).by_now(inputs.votes), expected)


def test_answers_that_are_not_among_the_votes_are_none() -> None:
    inputs = board(Offer(1, 0, [(0, 1, 1)]), Offer(2, 0, [(0, 1, 2)]), Offer(3, 3))
    early = replace(inputs, votes=inputs.votes.take(np.array([True, False])))
    np.testing.assert_allclose(Responses(early).by_now(early.votes), 0.5)


def test_an_answer_dated_before_its_draw_is_an_answer() -> None:
    inputs = board(Offer(1, 1, [(0, 1, 0.999)]), Offer(2, 1, [(0, 1, 2)]))
    np.testing.assert_allclose(Responses(inputs).by_now(inputs.votes), 1)


def test_votes_on_no_draw_keep_their_propensities() -> None:
    inputs = board(Offer(1, 0, [(0, 1, 1)]), Offer(2, 0, [(0, 1, None)]), ordinary=[(3, 0, 1), (3, 1, 2)])
    assert Responses(inputs).by_now(inputs.votes).tolist() == [0.5, 1, 1]


def test_pairs_of_retired_items_say_nothing_about_the_others() -> None:
    inputs = board(Offer(1, 0, [(0, 1, 1)]), Offer(2, 0, [(0, 2, None)]), Offer(3, 0, [(2, 1, None)]))
    roster = replace(inputs.roster, active=np.array([True, True, False]))
    retired = replace(inputs, roster=roster)
    assert Responses(inputs).by_now(inputs.votes)[0] < 1
    assert Responses(retired).by_now(inputs.votes).tolist() == [1]
