"""What is a row, what counts in it, and how much: small boards worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.boards import BoardConfig
from app.services.refit.eligibility import exposure_of
from app.services.refit.frame import frame_of
from app.services.refit.inputs import OPEN, ContextTable, Inputs, OfferTable, Roster, VoteTable
from app.services.refit.population import Unit, labels, populate
from app.stats.debias.propensity import eligibility_share

NAMES = ("a", "b", "c")
HOUR = 3_600_000_000


def votes(*rows: Sequence[float], reason: Sequence[int] = ()) -> VoteTable:
    """Votes from (context, offer, left, right, outcome, voter) and perhaps (propensity, hour)."""
    full = [(*row, *(0.2, 0)[len(row) - 6 :]) if len(row) < 8 else tuple(row) for row in rows]
    columns = np.array(full, dtype=np.float64).reshape(-1, 8).T
    whole = [np.nan_to_num(column).astype(np.int64) for column in columns]
    ids = np.arange(1, len(rows) + 1)
    excluded = np.array(reason, dtype=np.int64) if reason else np.full(len(rows), -1)
    return VoteTable(ids, *whole[:6], propensity=columns[6], created=whole[7] * HOUR, reason=excluded)


def inputs(
    table: VoteTable, *, contexts: int = 3, offers: Sequence[tuple[int, int]] = (), reasons: Sequence[str] = ()
) -> Inputs:
    """A board of three items, of contexts 1, 2, … and named offers (number, context)."""
    number = np.arange(contexts + 1)
    named = np.array(offers, dtype=np.int64).reshape(-1, 2).T
    # Hashes run against the numbers, so that no order is by accident that of the database.
    context_table = ContextTable(number, -7 * number, 0 * number, 0 * number, [{}])
    offer_table = OfferTable(named[0], named[1], -3 * named[0], 0 * named[0], named[0] < 0)
    return Inputs(table, tuple(reasons), context_table, offer_table, roster())


def roster(*, start: int = 0, active: Sequence[bool] = (True, True, True)) -> Roster:
    """Items a and b from the beginning, c from an hour on."""
    begins = np.array([0, 0, start * HOUR])
    return Roster(
        np.arange(3), NAMES, np.array(active), np.arange(3), begins, np.full(3, OPEN), np.full(3, 0.5), np.zeros(3)
    )


def test_on_battle_boards_each_vote_is_a_row() -> None:
    found = populate(inputs(votes((1, 0, 0, 1, 0, 0), (1, 0, 0, 1, 0, 0), (0, 0, 1, 2, 0, 5))), "battle")
    assert len(found.rows) == 3
    assert np.bincount(found.rows.context).tolist() in ([2, 1], [1, 2])
    assert found.weight.tolist() == [1, 1, 1]


def test_on_context_boards_the_offered_contexts_are_the_rows() -> None:
    found = populate(
        inputs(votes((1, 0, 0, 1, 0, 5), (1, 0, 0, 1, 1, 6), (1, 0, 1, 2, 0, 5), (0, 0, 0, 1, 0, 0))), "context"
    )
    # Contexts 1, 2, 3 and the vote without one.
    assert len(found.rows) == 4
    pair = found.votes.left * 3 + found.votes.right
    on_first = found.rows.context_id[found.row] == 1
    assert sorted(found.weight[on_first & (pair == 1)]) == [0.5, 0.5]
    assert found.weight[on_first & (pair == 5)].tolist() == [1]


def test_a_row_averages_over_its_named_offers() -> None:
    table = votes((1, 10, 0, 1, 0, 5), (1, 11, 0, 1, 0, 5), (1, 11, 0, 1, 1, 6))
    found = populate(inputs(table, contexts=1, offers=[(10, 1), (11, 1), (12, 1)]), "context")
    assert found.offers.row.tolist() == [0, 0, 0]
    weights = dict(zip(zip(found.votes.offer, found.votes.voter, strict=True), found.weight, strict=True))
    assert weights == {(10, 5): pytest.approx(1 / 3), (11, 5): pytest.approx(1 / 6), (11, 6): pytest.approx(1 / 6)}


@pytest.mark.parametrize(("unit", "rows"), [("battle", 1), ("context", 3)])
def test_an_excluded_vote_takes_its_row_along_on_battle_boards_only(unit: Unit, rows: int) -> None:
    table = votes((1, 0, 0, 1, 0, 5), (2, 0, 0, 1, 0, 5), reason=[0, -1])
    found = populate(inputs(table, reasons=["bot"]), unit)
    assert len(found.rows) == rows
    assert found.votes.ids.tolist() == [2]
    assert found.held.mean() == 0.5


@pytest.mark.parametrize("unit", ["battle", "context"])
def test_a_superseded_vote_is_no_loss(unit: Unit) -> None:
    table = votes((1, 0, 0, 1, 0, 5), (1, 0, 0, 1, 1, 5), reason=[0, -1])
    found = populate(inputs(table, contexts=1, reasons=["superseded"]), unit)
    assert len(found.rows) == 1
    assert found.held.mean() == 1
    assert found.votes.outcome.tolist() == [1]


def test_labels_of_one_pair_in_one_offer_are_kept_together() -> None:
    table = votes((1, 0, 0, 1, 0, 5), (1, 0, 0, 1, 0, 6), (2, 0, 0, 1, 0, 5), reason=[0, -1, 0])
    found = populate(inputs(table, contexts=2, reasons=["bot"]), "context")
    assert found.held.mean() == 0.5


def test_a_part_of_a_context_board_has_the_kept_rates_of_its_own_rows() -> None:
    """Contexts 1-4 lost three of their four votes, 5-8 none."""
    table = votes(*[(n, 0, 0, 1, 0, n) for n in range(1, 9)], reason=[0, 0, 0, -1, -1, -1, -1, -1])
    frame = frame_of(inputs(table, contexts=8, reasons=["bot"]), BoardConfig(unit="context"))
    first = frame.context_id <= 4
    used = [frame.view(rows).votes.propensity for rows in (first, ~first, first | True)]
    # Each rate is shrunk by one vote of the overall one.
    np.testing.assert_allclose(used[0], 0.2 * (1 + 0.25) / 5)
    np.testing.assert_allclose(used[1], 0.2)
    np.testing.assert_allclose(used[2], 0.2 * (5 + 0.625) / 9)


def test_offers_without_a_vote_are_rows_of_battle_boards_too() -> None:
    found = populate(inputs(votes((1, 10, 0, 1, 0, 5)), offers=[(10, 1), (11, 2)]), "battle")
    assert found.rows.context_id.tolist() == [1, 2]


def test_the_order_is_that_of_content() -> None:
    rows = [(2, 0, 0, 1, 0, 5), (1, 0, 1, 0, 2, 9), (1, 0, 0, 1, 0, 0), (0, 0, 2, 1, 1, 3)]
    first, second = populate(inputs(votes(*rows)), "battle"), populate(inputs(votes(*reversed(rows))), "battle")
    for name in ("context", "left", "right", "outcome", "voter"):
        assert getattr(first.votes, name).tolist() == getattr(second.votes, name).tolist()
    assert first.rows.offer_hash.tolist() == second.rows.offer_hash.tolist()


def test_a_late_item_is_eligible_in_later_rows_only() -> None:
    early = [(0, 0, 0, 1, 0, 0, 0.2, hour) for hour in (1, 2, 3)]
    late = [(0, 0, 0, 2, 0, 0, 0.2, 5)]
    board = inputs(votes(*early, *late))
    share = eligibility_share(exposure_of(populate(board, "battle"), roster(start=5)))
    assert share[0, 1] == 1
    assert share[0, 2] == 0.25
    always = eligibility_share(exposure_of(populate(board, "battle"), roster(start=1)))
    assert always[0, 2] == 1


def test_a_start_that_votes_contradict_was_no_start() -> None:
    board = inputs(votes((0, 0, 0, 1, 0, 0, 0.2, 1), (0, 0, 0, 2, 0, 0, 0.2, 2)))
    share = eligibility_share(exposure_of(populate(board, "battle"), roster(start=9)))
    assert share[0, 2] == 1


def test_a_vote_on_an_older_row_proves_that_the_row_was_still_open() -> None:
    """c is entered at hour 5 and voted on in a context that was registered at hour 3, not in those from before."""
    rows = [(1, 0, 0, 1, 0, 0, 0.2, 1), (2, 0, 0, 1, 0, 0, 0.2, 3), (2, 0, 0, 2, 0, 0, 0.2, 6)]
    board = inputs(votes(*rows), contexts=2)
    registered = replace(board.contexts, created=np.array([0, 1, 3]) * HOUR)
    share = eligibility_share(exposure_of(populate(replace(board, contexts=registered), "context"), roster(start=5)))
    assert share[0, 1] == 1
    assert share[0, 2] == 0.5


def test_an_answer_does_not_change_when_its_context_was_offered() -> None:
    """Registered at hour 1, before c; answered at hour 5, after. Answered or not, c could not be drawn."""
    board = inputs(votes((1, 0, 0, 1, 0, 0, 0.2, 5)), contexts=2)
    registered = replace(board.contexts, created=np.array([0, 1, 1]) * HOUR)
    found = populate(replace(board, contexts=registered), "context")
    assert found.offers.time.tolist() == [HOUR, HOUR]


@pytest.mark.parametrize("propensity", ["logged", "estimated"])
def test_a_pair_with_a_vote_always_has_a_propensity(propensity: Literal["logged", "estimated"]) -> None:
    """A vote on an item in a gap between its spans, in the only row there is."""
    board = inputs(votes((0, 0, 0, 2, 0, 0, 0.2, 3), (0, 0, 0, 1, 0, 0, 0.2, 3)))
    spans = np.array([0, 0, 0, 9]) * HOUR
    ends = np.array([OPEN, OPEN, 2 * HOUR, OPEN])
    gap = Roster(
        np.arange(3),
        NAMES,
        np.ones(3, dtype=np.bool_),
        np.array([0, 1, 2, 2]),
        spans,
        ends,
        np.full(3, 0.5),
        np.zeros(3),
    )
    used = frame_of(replace(board, roster=gap), BoardConfig(propensity=propensity)).view().votes.propensity
    assert (used > 0).all()
    if propensity == "logged":
        assert np.sort(used).tolist() == [0.1, 0.2]


def test_votes_on_retired_items_keep_their_row_but_lose_their_vote() -> None:
    board = inputs(votes((0, 0, 0, 1, 0, 0), (0, 0, 0, 2, 0, 0), (0, 0, 1, 0, 1, 0)))
    config = BoardConfig()
    retired = Inputs(board.votes, board.reasons, board.contexts, board.offers, roster(active=(True, True, False)))
    frame = frame_of(retired, config)
    assert frame.items == ("a", "b")
    assert frame.sample.n_rows == 3
    assert len(frame.sample.votes) == 2


def test_logged_propensities_are_used_where_every_vote_has_one() -> None:
    whole = inputs(votes((0, 0, 0, 1, 0, 0, 0.3, 0), (0, 0, 1, 0, 0, 0, 0.4, 0)))
    assert sorted(frame_of(whole, BoardConfig()).view().votes.propensity) == [0.3, 0.4]
    partly = inputs(votes((0, 0, 0, 1, 0, 0, 0.3, 0), (0, 0, 1, 0, 0, 0, np.nan, 0)))
    assert frame_of(partly, BoardConfig()).kind == "estimated"
    assert frame_of(whole, BoardConfig(propensity="estimated")).kind == "estimated"


@given(st.lists(st.integers(-3, 3), max_size=20))
def test_labels_are_dense_and_nobody_shares_zero(numbers: list[int]) -> None:
    found = labels(np.array(numbers, dtype=np.int64))
    assert sorted(set(found.tolist())) == list(range(len(set(found.tolist()))))
    for i, first in enumerate(numbers):
        for j, second in enumerate(numbers):
            assert (found[i] == found[j]) == (i == j or (first == second != 0))
