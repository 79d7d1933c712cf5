"""Segments as readers write them."""

from __future__ import annotations

from app.db.models.snapshots import Snapshot
from app.domain.boards import BoardConfig
from app.services.rankings.query import unknown_segment
from app.services.refit.segments import interpret, joined


def known_segment(asked: str | None, snapshot: Snapshot, config: BoardConfig) -> str | None:
    """The one name of the segment that was asked for, refused where the snapshot or the board has no such levels."""
    if asked is None:
        return None
    known = {level for level in snapshot.summary["segments"] if level.partition(":")[0] in config.segments}
    levels = interpret(asked, known)
    if not levels:
        raise unknown_segment(asked, sorted(known)[:50])
    return joined(levels)
