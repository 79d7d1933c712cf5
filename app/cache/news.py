"""News of boards: what changed, told to every process that listens.

News is a hint. Everything follows from PostgreSQL, so a message that is lost costs some staleness and nothing else.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import orjson
from redis import Redis
from redis.exceptions import RedisError

CHANNEL = "orthorank:news"

Event = Literal["votes", "rankings", "refit", "board", "keys"]
"""New votes are durable; live numbers moved; a refit ended; the board itself changed in a way that answers show; keys
were revoked (board 0)."""

EVERY_BOARD = 0

EVENTS = get_args(Event)

log = logging.getLogger(__name__)


class News(Protocol):
    """Where a use case tells, after its commit, what it changed."""

    def publish(self, board_id: int, event: Event, **data: Any) -> None:
        """Tell what happened to the board. `data` may hold what JSON holds, UUIDs and moments."""
        ...


@dataclass(frozen=True, slots=True)
class RedisNews:
    """Tells through Redis. A Redis that is away costs a warning, never the request."""

    redis: Redis

    def publish(self, board_id: int, event: Event, **data: Any) -> None:
        """Tell what happened to the board. `data` may hold what JSON holds, UUIDs and moments."""
        try:
            self.redis.publish(CHANNEL, written(board_id, event, data))
        except RedisError as error:
            log.warning("news %r of board %d not told: %s", event, board_id, error)


class Silence:
    """Tells nobody: of use where nobody listens."""

    def publish(self, board_id: int, event: Event, **data: Any) -> None:
        """Say nothing."""


@dataclass(frozen=True, slots=True)
class Bulletin:
    """One piece of news as it was heard."""

    board_id: int
    event: Event
    data: Mapping[str, Any]


def written(board_id: int, event: Event, data: Mapping[str, Any]) -> bytes:
    """News as it travels."""
    return orjson.dumps({"board": board_id, "event": event, **data})


def heard(message: bytes) -> Bulletin | None:
    """News as it was written; None for what is none, such as that of a newer version."""
    try:
        document = orjson.loads(message)
        board_id, event = document.pop("board"), document.pop("event")
    except (orjson.JSONDecodeError, AttributeError, TypeError, KeyError):
        return None
    return Bulletin(board_id, event, document) if isinstance(board_id, int) and event in EVENTS else None
