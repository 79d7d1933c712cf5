"""When items could be drawn: the active set in force as each row was offered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.services.refit.inputs import Roster
from app.services.refit.population import Population
from app.stats.debias.propensity import Exposure
from app.stats.types import Bools, Ints

EVER, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def exposure_of(population: Population, roster: Roster) -> Exposure:
    """Active sets of the rows, over the items that are active now.

    An item counts as active from the beginning where its first span starts no later than the first row, or where a
    vote on it is older than that start: then the start only says when it was entered here. A later vote on a row from
    before the start proves that this row was still open: the span starts there.
    """
    rows, items = population.rows, np.flatnonzero(roster.active)
    everyone = Exposure.always(len(rows), items.size)
    roster = _from_the_beginning(population, roster)
    edges = np.unique(np.concatenate([roster.span_from, roster.span_to]))
    period = np.searchsorted(edges, rows.time, side="right")
    used, group = np.unique(period, return_inverse=True)
    starts = np.concatenate([[EVER], edges])[used]
    active = np.stack([_active_at(time, roster)[items] for time in starts]) if used.size else everyone.active
    return Exposure(group.astype(np.int64), active, rows.offers)


def _from_the_beginning(population: Population, roster: Roster) -> Roster:
    opening = np.full(len(roster.names), LATEST)
    np.minimum.at(opening, roster.span_item, roster.span_from)
    first_row = population.rows.time.min(initial=LATEST)
    ever = (opening <= first_row) | (_earliest(population, population.votes.created, roster) < opening)
    first = roster.span_from == opening[roster.span_item]
    proven = np.minimum(opening, _earliest(population, population.rows.time[population.row], roster))
    start = np.where(ever, EVER, proven)[roster.span_item]
    return replace(roster, span_from=np.where(first, start, roster.span_from))


def _earliest(population: Population, time: Ints, roster: Roster) -> Ints:
    """Of each item, the earliest `time` (m,) of a vote on it."""
    earliest = np.full(len(roster.names), LATEST)
    for side in (population.votes.left, population.votes.right):
        np.minimum.at(earliest, side, time)
    return earliest


def _active_at(time: int, roster: Roster) -> Bools:
    inside = (roster.span_from <= time) & (time < roster.span_to)
    return np.bincount(roster.span_item[inside], minlength=len(roster.names)) > 0
