"""Columns of votes on their way in, as arrays that bulk statements are fed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from app.db.arrays import hashes, moments, plain, texts, uuids
from app.domain.votes import Row


def of_votes(rows: Sequence[Row], *, now: datetime) -> dict[str, str]:
    """What every vote has; `now` is the time of those that bring none."""
    ballots = [row.ballot for row in rows]
    return {
        "client_id": uuids([row.client_id for row in rows]),
        "digest": hashes([row.digest for row in rows]),
        "voter": texts([ballot.voter for ballot in ballots]),
        "voter_type": texts([ballot.voter_type for ballot in ballots]),
        "propensity": plain([ballot.propensity for ballot in ballots]),
        "created_at": moments([ballot.created_at or now for ballot in ballots]),
    }


def of_pairs(rows: Sequence[Row], *, now: datetime) -> dict[str, str]:
    """What votes on pairs have besides."""
    return {
        **of_votes(rows, now=now),
        "left_id": plain([row.left_id for row in rows]),
        "right_id": plain([row.right_id for row in rows]),
        "outcome": plain([row.outcome for row in rows]),
    }


def of_places(rows: Sequence[Row]) -> dict[str, str]:
    """Where votes stand whose contexts and slots were looked up."""
    return {
        "context_id": plain([row.context_id for row in rows]),
        "offer_id": plain([row.offer_id for row in rows]),
        "revision": plain([row.revision for row in rows]),
    }
