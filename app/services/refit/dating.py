"""When rows of draws made here began: as they were drawn, not as they were answered."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from app.services.refit.inputs import OPEN, Inputs, VoteTable
from app.stats.types import Ints


def dated(inputs: Inputs) -> VoteTable:
    """Votes on draws as of these: how long an answer takes must not decide which window its row is in."""
    votes, drawn = inputs.votes, inputs.offers.answered_by(inputs.votes)
    created = votes.created.copy()
    created[drawn] = inputs.offers.made(votes.offer[drawn])
    return replace(votes, created=created)


def first_drawn(inputs: Inputs) -> Ints:
    """Of each context the time of the first draw made here, `OPEN` without one."""
    offers, first = inputs.offers, np.full(inputs.contexts.ids.size, OPEN)
    place = np.searchsorted(inputs.contexts.ids, offers.context[offers.drawn])
    np.minimum.at(first, place, offers.created[offers.drawn])
    return first
