"""When items could be drawn: the active set in force as each offer was made."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.services.refit.inputs import Roster
from app.services.refit.population import Population
from app.stats.debias.propensity import Exposure
from app.stats.types import Bools, Ints

EVER, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def exposure_of(population: Population, roster: Roster) -> Exposure:
    """Active sets of the offers, over the items that are active now.

    An item counts as active from the beginning where its first span starts no later than the first offer, or where a
    vote on it is older than that start: then the start only says when it was entered here. A later vote on an offer
    from before the start proves that this offer was still open: the span starts there.
    """
    offers, items = population.offers, np.flatnonzero(roster.active)
    everyone = np.ones((1, items.size), dtype=np.bool_)
    roster = _from_the_beginning(population, roster)
    edges = np.unique(np.concatenate([roster.span_from, roster.span_to]))
    period = np.searchsorted(edges, offers.time, side="right")
    used, group = np.unique(period, return_inverse=True)
    starts = np.concatenate([[EVER], edges])[used]
    active = np.stack([_active_at(time, roster)[items] for time in starts]) if used.size else everyone
    return Exposure(offers.row, group.astype(np.int64), active, len(population.rows))


def _from_the_beginning(population: Population, roster: Roster) -> Roster:
    opening = np.full(len(roster.names), LATEST)
    np.minimum.at(opening, roster.span_item, roster.span_from)
    first_offer = population.offers.time.min(initial=LATEST)
    ever = (opening <= first_offer) | (_earliest(population, population.votes.created, roster) < opening)
    first = roster.span_from == opening[roster.span_item]
    proven = np.minimum(opening, _earliest(population, population.offers.time[population.offer], roster))
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
