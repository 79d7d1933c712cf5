"""From stored votes to the rows of the estimator: which votes count, what is a row, in an order of content alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from app.services.refit.dating import dated, first_drawn
from app.services.refit.inputs import OPEN, Inputs, VoteTable
from app.stats.debias.folds import Hashes, canonical_order, content_hash, mix
from app.stats.debias.propensity import Labels
from app.stats.debias.weights import first_of_event, vote_weights
from app.stats.types import Bools, Floats, Ints

Unit = Literal["battle", "context"]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of the estimator (arrays of length n): the labelled ones first, then those without a label.

    Parameters
    ----------
    context : label of the row's context; a vote without context is one of its own.
    context_id : its database id, 0 where there is none.
    context_hash, offer_hash : content hashes for folds; equal on context boards.
    time : µs, when the row was offered.
    pattern : see `ContextTable`.
    """

    context: Ints
    context_id: Ints
    context_hash: Hashes
    offer_hash: Hashes
    time: Ints
    pattern: Ints

    def __len__(self) -> int:
        return int(self.context.size)


@dataclass(frozen=True, slots=True)
class Offers:
    """Offers that rows average over: those with a vote first, in the order of their votes.

    Parameters
    ----------
    row : (o,) the row of each; every row has at least one.
    time : (o,) µs, when it was made. It does not depend on whether anyone answered.
    """

    row: Ints
    time: Ints


@dataclass(frozen=True, slots=True)
class Population:
    """Rows and the counted votes on them, in canonical order.

    Parameters
    ----------
    rows : of the estimator.
    offers : of the rows.
    votes : counted votes.
    row, offer : (m,) row and offer of each vote.
    weight : (m,) share of each vote within its row.
    voter : (m,) label; an anonymous vote has one of its own.
    event : (e,) positions among the votes of the first one on each distinct (offer, ordered pair).
    labels : distinct labels before exclusions; on battle boards their rows are of no account where an excluded vote
        has none.
    held : (l,) those that are still there.
    lasting, labels_lasting : (m,) and (l,) those whose rows stay without them: on context boards all, on battle boards
        those on draws made here.
    designed : whether all offers are draws made here, so that nothing else can have been shown.
    """

    rows: Rows
    offers: Offers
    votes: VoteTable
    row: Ints
    offer: Ints
    weight: Floats
    voter: Ints
    event: Ints
    labels: Labels
    held: Bools
    lasting: Bools
    labels_lasting: Bools
    designed: bool


def populate(inputs: Inputs, unit: Unit) -> Population:
    """Rows, votes and counts of a board.

    On battle boards an excluded vote takes its row along; on context boards the row stays, without the label.
    A superseded vote is neither: its successor stands in its place. A draw made here is a row whatever becomes of its
    votes, on battle boards too.
    """
    inputs = replace(inputs, votes=dated(inputs))
    current = inputs.votes.take(~inputs.superseded(inputs.votes.reason) | inputs.offers.answered_by(inputs.votes))
    standing, occurrence = _sorted(current.take(_lasting(current, inputs, unit) | (current.reason < 0)), inputs)
    draw, row = _draws(standing, unit), _shared_rows(standing, unit)
    counted = standing.reason < 0
    rows = _rows(standing, inputs, unit, place=(row, occurrence))
    offers = _offers(standing, inputs, unit, place=(draw, row, rows))
    before = _before(current, standing, inputs, unit, place=(draw, row))
    designed = _designed(standing, rows, inputs)
    votes, row, draw = standing.take(counted), row[counted], draw[counted]
    weight = vote_weights(draw, votes.left, votes.right, offers_of_row=np.bincount(offers.row)[row])
    event = first_of_event(draw, votes.left, votes.right)
    lasting = _lasting(votes, inputs, unit)
    return Population(
        rows, offers, votes, row, draw, weight, labels(votes.voter), event, *before[:2], lasting, before[2], designed
    )


def distinct(label: Ints) -> int:
    """How many different labels there are, of labels that are nearly dense: counting them is quicker than hashing."""
    return int(np.count_nonzero(np.bincount(label))) if label.size else 0


def labels(number: Ints) -> Ints:
    """Dense labels by first appearance; 0 is nobody in particular and gets a new one every time."""
    _, known = np.unique(number, return_inverse=True)
    marked = np.where(number == 0, number.size + np.arange(number.size), known)
    _, first, inverse = np.unique(marked, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]


def _lasting(votes: VoteTable, inputs: Inputs, unit: Unit) -> Bools:
    """(m,) votes whose rows stay where they are excluded."""
    return np.ones(len(votes), dtype=np.bool_) if unit == "context" else inputs.offers.answered_by(votes)


def _designed(standing: VoteTable, rows: Rows, inputs: Inputs) -> bool:
    """Whether every offer of every row is a draw made here."""
    offers = inputs.offers
    drawn = bool(offers.drawn.all() and offers.answered_by(standing).all())
    return drawn and bool(np.isin(rows.context_id, offers.context).all())


def _sorted(votes: VoteTable, inputs: Inputs) -> tuple[VoteTable, Ints]:
    """The votes by context, offer, pair, voter and outcome, never by number or arrival; and each one's occurrence."""
    content = (_context_keys(votes, inputs), _offer_keys(votes, inputs), votes.left, votes.right)
    ties = (votes.propensity, votes.created)
    order, occurrence = canonical_order(*content, votes.voter, votes.outcome, ties=ties)
    return votes.take(order), occurrence


def _context_keys(votes: VoteTable, inputs: Inputs) -> Ints:
    return inputs.contexts.key[np.searchsorted(inputs.contexts.ids, votes.context)]


def _offer_keys(votes: VoteTable, inputs: Inputs) -> Ints:
    keys = np.zeros_like(votes.offer)
    named = votes.offer > 0
    keys[named] = inputs.offers.key[np.searchsorted(inputs.offers.ids, votes.offer[named])]
    return keys


def _draws(votes: VoteTable, unit: Unit) -> Ints:
    """Label of the offer behind each sorted vote, increasing along them.

    Votes share one when they share a named offer or, on context boards, a context without naming an offer.
    """
    shared = (votes.offer > 0) | ((votes.context > 0) & (unit == "context"))
    same = (votes.offer[1:] == votes.offer[:-1]) & (votes.context[1:] == votes.context[:-1])
    return _runs(shared[1:] & same, len(votes))


def _shared_rows(votes: VoteTable, unit: Unit) -> Ints:
    """Row of each sorted vote: its offer on battle boards, on others its context, or its offer where it has none."""
    if unit == "battle":
        return _draws(votes, unit)
    shared = (votes.context[1:] > 0) | ((votes.offer[1:] > 0) & (votes.offer[1:] == votes.offer[:-1]))
    return _runs(shared & (votes.context[1:] == votes.context[:-1]), len(votes))


def _runs(goes_on: Bools, size: int) -> Ints:
    """Labels of runs, given for each entry but the first whether it goes on with the run before it."""
    return np.cumsum(np.concatenate([[0], ~goes_on]))[:size]


def _rows(votes: VoteTable, inputs: Inputs, unit: Unit, *, place: tuple[Ints, Ints]) -> Rows:
    row, occurrence = place
    first = np.flatnonzero(np.diff(row, prepend=-1))
    silent, silent_time, silent_hash = _silent(inputs, unit, votes)
    context_id = np.concatenate([votes.context[first], silent])
    at = np.searchsorted(inputs.contexts.ids, context_id)
    key = inputs.contexts.key[at].astype(np.uint64)
    content = np.concatenate([_vote_hashes(votes, inputs, occurrence)[first], silent_hash])
    own = np.where(context_id > 0, mix(key), content)
    began = np.minimum.reduceat(votes.created, first) if first.size else np.zeros(0, dtype=np.int64)
    if unit == "context":
        began = np.minimum(began, first_drawn(inputs)[at[: first.size]])
    return Rows(
        context=labels(context_id),
        context_id=context_id,
        context_hash=own,
        offer_hash=own if unit == "context" else content,
        time=np.concatenate([began, silent_time]),
        pattern=inputs.contexts.pattern[at],
    )


def _offers(votes: VoteTable, inputs: Inputs, unit: Unit, *, place: tuple[Ints, Ints, Rows]) -> Offers:
    """Offers with a vote, named ones without, and one of each row that has neither."""
    draw, row, rows = place
    first = np.flatnonzero(np.diff(draw, prepend=-1))
    began = np.minimum.reduceat(votes.created, first) if first.size else np.zeros(0, dtype=np.int64)
    bare_row, bare_time = _bare(inputs, rows) if unit == "context" else (first[:0], began[:0])
    heard = np.concatenate([row[first], bare_row])
    rest = np.flatnonzero(np.bincount(heard, minlength=len(rows)) == 0)
    made = np.minimum(began, _registered(votes, first, inputs, unit))
    return Offers(np.concatenate([heard, rest]), np.concatenate([made, bare_time, rows.time[rest]]))


def _registered(votes: VoteTable, first: Ints, inputs: Inputs, unit: Unit) -> Ints:
    """When the offers of these votes were entered, if they were: by name, or with their context."""
    entered = votes.created[first].copy()
    offer, context = votes.offer[first], votes.context[first]
    named, whole = offer > 0, (offer == 0) & (context > 0) & (unit == "context")
    entered[named] = inputs.offers.created[np.searchsorted(inputs.offers.ids, offer[named])]
    entered[whole] = inputs.contexts.created[np.searchsorted(inputs.contexts.ids, context[whole])]
    return entered


def _bare(inputs: Inputs, rows: Rows) -> tuple[Ints, Ints]:
    """Row and time of each named offer without a vote, in the order of content."""
    offers = inputs.offers
    bare = np.flatnonzero(~np.isin(offers.ids, inputs.votes.offer))
    bare = bare[np.argsort(offers.key[bare], kind="stable")]
    order = np.argsort(rows.context_id, kind="stable")
    place = np.searchsorted(rows.context_id, offers.context[bare], sorter=order)
    row = order[np.minimum(place, max(order.size - 1, 0))] if order.size else order[:0]
    here = rows.context_id[row] == offers.context[bare] if order.size else np.zeros(0, dtype=np.bool_)
    return row[here], offers.created[bare][here]


def _vote_hashes(votes: VoteTable, inputs: Inputs, occurrence: Ints) -> Hashes:
    """Content hash of each vote: what it is about, who gave it, how it went, and its number among equals."""
    names = content_hash(inputs.roster.names)
    where = (_context_keys(votes, inputs), _offer_keys(votes, inputs))
    return mix(*where, names[votes.left], names[votes.right], votes.voter, votes.outcome, occurrence)


def _silent(inputs: Inputs, unit: Unit, votes: VoteTable) -> tuple[Ints, Ints, Hashes]:
    """Context, time and content hash of the rows without any vote, in canonical order."""
    table = inputs.contexts
    if unit == "context":
        index = np.flatnonzero(~np.isin(table.ids, votes.context) & (table.ids > 0))
        index = index[np.argsort(table.key[index], kind="stable")]
        drawn = first_drawn(inputs)[index]
        time = np.where(drawn < OPEN, drawn, table.created[index])
        return table.ids[index], time, mix(table.key[index])
    offers = inputs.offers
    index = np.flatnonzero(~np.isin(offers.ids, inputs.votes.offer))
    key = table.key[np.searchsorted(table.ids, offers.context[index])]
    order = np.lexsort((offers.key[index], key))
    index, key = index[order], key[order]
    return offers.context[index], offers.created[index], mix(key, offers.key[index])


def _before(
    current: VoteTable, standing: VoteTable, inputs: Inputs, unit: Unit, *, place: tuple[Ints, Ints]
) -> tuple[Labels, Bools, Bools]:
    """Labels before exclusions, those still there, and those whose rows stay."""
    going = current.take(~_lasting(current, inputs, unit))
    staying = _lasting(standing, inputs, unit)
    found, held = _labels_before(standing.take(staying), place[0][staying], place[1][staying])
    every = Labels(
        np.concatenate([np.zeros_like(going.left), found.row]),
        np.concatenate([going.left, found.left]),
        np.concatenate([going.right, found.right]),
    )
    lasting = np.arange(every.row.size) >= len(going)
    return every, np.concatenate([going.reason < 0, held]), lasting


def _labels_before(standing: VoteTable, draw: Ints, row: Ints) -> tuple[Labels, Bools]:
    """Several votes on one pair of an offer are one label; it is held while one of them is."""
    event = first_of_event(draw, standing.left, standing.right)
    cells = _cells(standing)
    held = np.isin(cells[event], cells[standing.reason < 0])
    return Labels(row[event], standing.left[event], standing.right[event]), held


def _cells(votes: VoteTable) -> Ints:
    """(m,) one number for each (context, offer, pair); without a context a vote is alone."""
    alone = np.where(votes.context > 0, 0, votes.ids)
    columns = (alone, votes.context, votes.offer, votes.left, votes.right)
    order = np.lexsort(columns)
    first = np.zeros(order.size, dtype=np.bool_)
    for column in columns:
        first[1:] |= np.diff(column[order]) != 0
    cells = np.empty_like(order)
    cells[order] = np.cumsum(first)
    return cells
