"""The tables. Whoever imports one of the modules has all of them: foreign keys name tables of others."""

from app.db.models import (
    assignments,
    boards,
    contexts,
    exclusions,
    items,
    jobs,
    judgements,
    keys,
    live,
    snapshots,
    tasks,
    votes,
)

__all__ = [
    "assignments",
    "boards",
    "contexts",
    "exclusions",
    "items",
    "jobs",
    "judgements",
    "keys",
    "live",
    "snapshots",
    "tasks",
    "votes",
]
