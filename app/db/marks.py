"""Up to where a refit reads a board, and fingerprints of what is there."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

MARKS = """
SELECT (SELECT max(id) FROM votes WHERE board_id = :board), (SELECT max(id) FROM offers WHERE board_id = :board),
       (SELECT max(id) FROM exclusions WHERE board_id = :board), clock_timestamp()
"""
FINGERPRINT = """
SELECT md5(concat_ws('|', CAST(:watermark AS bigint),
    (SELECT concat_ws(',', count(*), max(id), count(lifted_at), max(lifted_at))
     FROM (SELECT id, CASE WHEN lifted_at <= :moment THEN lifted_at END AS lifted_at
           FROM exclusions WHERE board_id = :board AND id <= :rules) AS rules),
    (SELECT concat_ws(',', count(*) FILTER (WHERE offered_at <= :moment AND config ->> 'unit' = 'context'), count(text))
     FROM contexts JOIN boards ON boards.id = board_id WHERE board_id = :board),
    (SELECT count(*) FROM offers WHERE board_id = :board AND id <= :offers),
    (SELECT count(*) FROM judgements WHERE board_id = :board AND created_at <= :moment),
    (SELECT string_agg(concat_ws(',', name, label_cost, cost, active_from, active_to), ';' ORDER BY name, item_spans.id)
     FROM items LEFT JOIN item_spans ON item_id = items.id WHERE board_id = :board)
))
"""

SELECTION = """
SELECT md5(concat_ws('|',
    (SELECT string_agg(id::text, ',' ORDER BY id) FROM exclusions
     WHERE board_id = :board AND id <= :rules AND (lifted_at IS NULL OR lifted_at > :moment)),
    (SELECT string_agg(concat_ws(',', item_spans.id, active_from, active_to), ';' ORDER BY item_spans.id)
     FROM items JOIN item_spans ON item_id = items.id WHERE board_id = :board)
))
"""


class Marks(NamedTuple):
    """Up to where a board is read: everything below was committed when these were taken.

    Parameters
    ----------
    votes, offers, rules : highest numbers of votes, named offers and exclusions, 0 without one.
    moment : contexts offered by then, judgements stored by then, and rules lifted by then.
    """

    votes: int
    offers: int
    rules: int
    moment: datetime

    def beyond(self, other: Marks) -> Marks:
        """The later one of each."""
        latest = max(self.moment, other.moment)
        return Marks(max(self.votes, other.votes), max(self.offers, other.offers), max(self.rules, other.rules), latest)


class Fingerprint(NamedTuple):
    """Of what a refit reads.

    Parameters
    ----------
    inputs : equal where nothing of it has changed.
    selection : equal where no vote became a row, or ceased to be one, but by coming in: the rules about votes are the
        same, and the times at which items could be drawn.
    """

    inputs: str
    selection: str
