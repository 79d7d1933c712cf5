"""Votes stored in one round trip, where all that they rest on is as it was remembered."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from app.db.arrays import document, moments, plain, texts
from app.db.columns import of_pairs
from app.db.keys import USE_RESOLUTION
from app.db.together import at_once
from app.domain.boards import Board
from app.domain.votes import Row

STORE = text("""
SELECT extract(epoch FROM store_pairs(
    :boards, :updates, :keys, :resolution, :name_boards, :names, :name_items,
    :board_ids, :client_id, :digest, :context, :features, :left_id, :right_id, :outcome, :voter, :voter_type,
    :propensity, :created_at
))
""")

log = logging.getLogger(__name__)


class Footing(NamedTuple):
    """What the votes of a board were prepared by, as it was remembered.

    Parameters
    ----------
    keys : numbers of those that the votes came with.
    names : of items, with the items' numbers.
    """

    board: Board
    keys: Collection[int]
    names: Mapping[str, int]


Groups = Sequence[tuple[Footing, Sequence[Row]]]
"""The votes of each board, and what they were prepared by."""


class BallotRepository:
    """Votes on pairs that are nothing special: no assignment, no named offer, no limit of their voters."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def store(self, groups: Groups, *, now: datetime) -> datetime | None:
        """Store the votes of each board, and say when they were received, in one round trip.

        None where not every vote could be stored: then none was, and a transaction of more has to be rolled back. So it
        is where the function fails, or another schema has none.

        Parameters
        ----------
        groups : in the order of the boards' numbers.
        now : the time of votes that bring none.
        """
        try:
            received = at_once(self._session, STORE, _values(groups, now))
        except DBAPIError as error:
            if isinstance(error, OperationalError | InterfaceError):
                raise
            log.warning("votes are not stored by the function for them: %s", error)
            return None
        return None if received is None else datetime.fromtimestamp(float(received), UTC)


def _values(groups: Groups, now: datetime) -> dict[str, str]:
    """What the function is called with; keys may have come with the votes of several boards."""
    boards = [footing.board for footing, _ in groups]
    rows = list(chain.from_iterable(rows for _, rows in groups))
    named = [(board, *name) for (board, _, names), _ in groups for name in names.items()]
    contexts = [row.ballot.context for row in rows]
    return {
        "boards": plain([board.id for board in boards]),
        "updates": moments([board.updated_at for board in boards]),
        "keys": plain(set(chain.from_iterable(footing.keys for footing, _ in groups))),
        "resolution": f"{USE_RESOLUTION.total_seconds()} seconds",
        "name_boards": plain([board.id for board, _, _ in named]),
        "names": texts([name for _, name, _ in named]),
        "name_items": plain([item for _, _, item in named]),
        "board_ids": plain([footing.board.id for footing, rows in groups for _ in rows]),
        **of_pairs(rows, now=now),
        "context": texts([None if context is None else context.id for context in contexts]),
        "features": texts([document(row.features) for row in rows]),
    }
