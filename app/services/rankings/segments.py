"""Segments as readers write them."""

from __future__ import annotations

from app.db.models import Snapshot
from app.services.rankings.query import unknown_segment
from app.services.refit.segments import interpret, joined


def known_segment(asked: str | None, snapshot: Snapshot) -> str | None:
    """The one name of the segment that was asked for, refused where the snapshot knows no such levels."""
    if asked is None:
        return None
    levels = interpret(asked, snapshot.summary["segments"])
    if not levels:
        raise unknown_segment(asked, sorted(snapshot.summary["segments"])[:50])
    return joined(levels)
