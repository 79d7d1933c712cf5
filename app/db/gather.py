"""Read a board's votes, contexts and rules in bulk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, LiteralString, NamedTuple

import numpy as np
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.locks import Lock, hold
from app.db.marks import FINGERPRINT, MARKS, SELECTION, Fingerprint, Marks
from app.db.packed import (
    CHANCE,
    DRAW_COLUMNS,
    HASH,
    JUDGEMENT_COLUMNS,
    MICROSECONDS,
    NO_END,
    OFFER_COLUMNS,
    VOTE_COLUMNS,
    Columns,
    Packed,
    columns_of,
)
from app.stats.types import Floats, Ints

CONTEXTS_AT_ONCE = 20_000
RANKINGS_AT_ONCE = 20_000

CONTEXTS = f"""
SELECT id, {HASH.format("external_id")}, {MICROSECONDS.format("created_at")}, features::text, text
FROM contexts
WHERE board_id = :board AND (id = ANY(:ids) OR (CAST(:until AS timestamptz) IS NOT NULL AND offered_at <= :until))
ORDER BY id
"""
OFFERED_BETWEEN = """
SELECT id FROM contexts WHERE board_id = :board AND offered_at > :after AND offered_at <= :until
UNION
SELECT context_id FROM offers WHERE board_id = :board AND id > :after_offer AND id <= :last_offer
"""
OFFERED_BY = "SELECT id FROM contexts WHERE id = ANY(:ids) AND offered_at <= :until"

ITEMS = """
SELECT id, name, EXISTS (SELECT FROM item_spans WHERE item_id = items.id AND active_to IS NULL) AS active, label_cost,
       cost
FROM items WHERE board_id = :board ORDER BY name COLLATE "C"
"""

SPANS = f"""
SELECT item_id, {MICROSECONDS.format("active_from")}, {MICROSECONDS.format("active_to")}
FROM item_spans JOIN items ON items.id = item_id
WHERE board_id = :board ORDER BY item_spans.id
"""

JUDGES = f"""
SELECT judge, {HASH.format("judge")} FROM judgements WHERE board_id = :board AND created_at <= :until
GROUP BY judge ORDER BY judge COLLATE "C"
"""

EXCLUDED = """
WITH rules AS (
    SELECT * FROM exclusions
    WHERE board_id = :board AND id <= :rules
        AND (lifted_at IS NULL OR lifted_at > coalesce(CAST(:as_of AS timestamptz), 'infinity'))
),
hits AS (
    SELECT vote_id AS id, id AS rule, reason FROM rules WHERE {vote_id}
    UNION ALL
    SELECT votes.id, rules.id, reason FROM rules JOIN votes USING (board_id, voter) WHERE {id}
    UNION ALL
    SELECT votes.id, rules.id, reason
    FROM rules
    JOIN votes USING (board_id)
    JOIN boards ON boards.id = board_id
    LEFT JOIN contexts ON contexts.id = context_id
    WHERE filter IS NOT NULL AND {id}
        AND coalesce(voter_type = filter ->> 'voter_type', filter ->> 'voter_type' IS NULL)
        AND coalesce(external_id = filter ->> 'context', filter ->> 'context' IS NULL)
        AND coalesce(votes.created_at >= (filter ->> 'created_from')::timestamptz, TRUE)
        AND coalesce(votes.created_at < (filter ->> 'created_to')::timestamptz, TRUE)
        AND (filter ->> 'outcome' IS NULL OR coalesce(
            config -> 'outcomes' -> outcome::int ->> 'name' = filter ->> 'outcome', FALSE
        ))
        AND (
            filter ->> 'item' IS NULL OR EXISTS (
                SELECT FROM item_names
                WHERE item_names.board_id = rules.board_id AND item_names.name = filter ->> 'item'
                AND (item_id IN (left_id, right_id) OR item_id = ANY(menu))
            )
        )
)
SELECT DISTINCT ON (id) id, reason FROM hits ORDER BY id, reason = 'superseded' DESC, rule
"""
EXCLUDED_UP_TO = EXCLUDED.format(id="votes.id <= :watermark", vote_id="vote_id <= :watermark")
EXCLUDED_AMONG = EXCLUDED.format(id="votes.id = ANY(:ids)", vote_id="vote_id = ANY(:ids)")

CONTEXT_NAMES = "SELECT id, external_id FROM contexts WHERE id = ANY(:ids)"
VOTE_NAMES = "SELECT id, client_id::text FROM votes WHERE id = ANY(:ids)"

RANKINGS = f"""
SELECT id, coalesce(context_id, 0), coalesce(offer_id, 0), coalesce({HASH.format("voter")}, 0),
       coalesce(propensity, 'NaN'), {MICROSECONDS.format("created_at")}, ballot::text
FROM votes WHERE board_id = :board AND menu IS NOT NULL AND id <= :watermark ORDER BY id
"""
RANKED_BETWEEN = """
SELECT coalesce(context_id, 0) FROM votes
WHERE board_id = :board AND menu IS NOT NULL AND id > :after AND id <= :watermark
"""

VOTES_OF_CONTEXTS = """
SELECT id FROM votes WHERE board_id = :board AND context_id = ANY(:ids) AND voter IS NOT NULL
UNION ALL
SELECT id FROM votes WHERE board_id = :board AND context_id = ANY(:ids) AND voter IS NULL
"""
THROUGH = "SELECT received_at FROM votes WHERE board_id = :board AND id = :watermark"


class ContextRow(NamedTuple):
    """A context as a refit reads it: `key` its content hash, `created` in µs of 2000, `features` as JSON."""

    id: int
    key: int
    created: int
    features: str
    text: str | None


class RankingRow(NamedTuple):
    """A vote on a menu as a refit reads it: 0 for no context, offer or voter, `created` in µs of 2000."""

    id: int
    context: int
    offer: int
    voter: int
    propensity: float
    created: int
    ballot: str


class ItemRow(NamedTuple):
    """An item as a refit reads it: `active` says whether it can be drawn now."""

    id: int
    name: str
    active: bool
    label_cost: float
    cost: float


class GatherRepository:
    """Everything that a refit reads of one board."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def marks(self, board_id: int) -> Marks:
        """Up to where every vote, offer, context offered and replaced vote is committed; end the work at once."""
        hold(self._session, Lock.VOTES, board_id)
        votes, offers, rules, moment = self._session.execute(text(MARKS), {"board": board_id}).one()
        return Marks(votes or 0, offers or 0, rules or 0, moment)

    def freeze(self) -> None:
        """See one state of the database from the next statement on; call it first in the work."""
        self._session.connection(execution_options={"isolation_level": "REPEATABLE READ"})

    def through(self, board_id: int, watermark: int) -> datetime | None:
        """When the vote of that number was received."""
        values = {"board": board_id, "watermark": watermark}
        received: datetime | None = self._session.execute(text(THROUGH), values).scalar_one_or_none()
        return received

    def fingerprint(self, board_id: int, marks: Marks) -> Fingerprint:
        """Of what a refit up to some marks reads, in the view of the database that it reads.

        Of assignments it reads which pairs were drawn for the offers, and answers that are among the votes.
        """
        values = {"board": board_id, "watermark": marks.votes, **marks._asdict()}
        return Fingerprint(*(str(self._session.scalar(text(query), values)) for query in (FINGERPRINT, SELECTION)))

    def votes(self, board_id: int, watermark: int, *, after: int = 0) -> Columns:
        """The board's pair votes up to a number; 0 stands for no context, offer or voter, NaN for no propensity."""
        return columns_of(self._session, Packed("votes", VOTE_COLUMNS, "id"), board_id, watermark, after=after)

    def rankings(self, board_id: int, watermark: int) -> Iterator[RankingRow]:
        """The board's votes on menus up to a number."""
        query = text(RANKINGS).execution_options(yield_per=RANKINGS_AT_ONCE)
        rows = self._session.execute(query, {"board": board_id, "watermark": watermark})
        return map(RankingRow._make, rows)

    def ranked_between(self, board_id: int, after: int, watermark: int) -> Ints:
        """The context of each vote on a menu between two numbers, 0 for none."""
        values = {"board": board_id, "after": after, "watermark": watermark}
        return np.fromiter(self._session.scalars(text(RANKED_BETWEEN), values), dtype=np.int64)

    def votes_of_contexts(self, board_id: int, contexts: Ints, watermark: int) -> Columns:
        """The pair votes on these contexts up to a number."""
        values = {"board": board_id, "ids": contexts.tolist()}
        found = list(self._session.scalars(text(VOTES_OF_CONTEXTS), values))
        packed = Packed("votes", VOTE_COLUMNS, "id", condition="AND id = ANY(%s)", asked=(found,))
        return columns_of(self._session, packed, board_id, watermark)

    def offers(self, board_id: int, last: int = NO_END) -> Columns:
        """The named offers and draws up to a number."""
        return columns_of(self._session, Packed("offers", OFFER_COLUMNS, "id"), board_id, last)

    def offers_of_contexts(self, board_id: int, contexts: Ints, last: int) -> Columns:
        """The named offers and draws of these contexts up to a number."""
        packed = Packed("offers", OFFER_COLUMNS, "id", condition="AND context_id = ANY(%s)", asked=(contexts.tolist(),))
        return columns_of(self._session, packed, board_id, last)

    def offered_between(self, board_id: int, before: Marks, now: Marks) -> Ints:
        """Contexts that were offered, or that an offer of was named, between two marks."""
        values = {"board": board_id, "after": before.moment, "until": now.moment}
        values |= {"after_offer": before.offers, "last_offer": now.offers}
        return np.fromiter(self._session.scalars(text(OFFERED_BETWEEN), values), dtype=np.int64)

    def offered_by(self, contexts: Ints, until: datetime) -> Ints:
        """Those of the contexts that were offered by a time."""
        values = {"ids": contexts.tolist(), "until": until}
        return np.fromiter(self._session.scalars(text(OFFERED_BY), values), dtype=np.int64)

    def draws(self, board_id: int, last: int = NO_END) -> Columns:
        """The assignments of offers up to a number."""
        return columns_of(self._session, Packed("assignments", DRAW_COLUMNS, "offer_id"), board_id, last)

    def draws_of_offers(self, board_id: int, offers: Ints) -> Columns:
        """The assignments of these offers."""
        asked: LiteralString = "AND offer_id = ANY(%s)"
        packed = Packed("assignments", DRAW_COLUMNS, "offer_id", condition=asked, asked=(offers.tolist(),))
        return columns_of(self._session, packed, board_id, NO_END)

    def judges(self, board_id: int, *, until: datetime) -> dict[int, str]:
        """Names of the board's judges by a time, by their hash, sorted by name."""
        return {row[1]: row[0] for row in self._session.execute(text(JUDGES), {"board": board_id, "until": until})}

    def judgements(self, board_id: int, outcomes: Sequence[str], *, until: datetime) -> tuple[Columns, Floats]:
        """Judgements stored by a time, a judge by the hash of its name; their (g, C) chances of these outcomes."""
        return self._judgements(board_id, outcomes, "AND created_at <= %s", (until,))

    def judgements_of_contexts(
        self, board_id: int, contexts: Ints, outcomes: Sequence[str], *, judges: Sequence[str]
    ) -> tuple[Columns, Floats]:
        """Those of these contexts by these judges."""
        condition: LiteralString = "AND context_id = ANY(%s) AND judge = ANY(%s)"
        return self._judgements(board_id, outcomes, condition, (contexts.tolist(), list(judges)))

    def contexts(self, board_id: int, ids: Ints, *, offered: datetime | None) -> Iterator[ContextRow]:
        """These contexts, and those offered by a time where one is given, by number."""
        query = text(CONTEXTS).execution_options(yield_per=CONTEXTS_AT_ONCE)
        values = {"board": board_id, "ids": ids.tolist(), "until": offered}
        return map(ContextRow._make, self._session.execute(query, values))

    def context_names(self, ids: Ints) -> dict[int, str]:
        """Public ids of contexts."""
        rows = self._session.execute(text(CONTEXT_NAMES), {"ids": np.unique(ids).tolist()})
        return {row[0]: row[1] for row in rows}

    def vote_names(self, ids: Ints) -> dict[int, str]:
        """Public ids of votes."""
        rows = self._session.execute(text(VOTE_NAMES), {"ids": np.unique(ids).tolist()})
        return {row[0]: row[1] for row in rows}

    def items(self, board_id: int) -> list[ItemRow]:
        """Every item, by name."""
        return [ItemRow._make(row) for row in self._session.execute(text(ITEMS), {"board": board_id})]

    def spans(self, board_id: int) -> list[tuple[int, int, int | None]]:
        """(item, from, to) in µs of 2000, `to` None while the span is open."""
        return [(row[0], row[1], row[2]) for row in self._session.execute(text(SPANS), {"board": board_id})]

    def excluded(
        self, board_id: int, watermark: int, *, rules: int = NO_END, as_of: datetime | None = None
    ) -> dict[int, str]:
        """Votes that a rule excludes, with the reason: that it was superseded before all, else of the oldest rule."""
        values = {"board": board_id, "watermark": watermark, "rules": rules, "as_of": as_of}
        rows = self._session.execute(text(EXCLUDED_UP_TO), values)
        return {row[0]: row[1] for row in rows}

    def excluded_among(self, board_id: int, votes: Ints, *, rules: int, as_of: datetime) -> dict[int, str]:
        """Those of the votes that the rules up to a number excluded as they stood at a time."""
        values = {"board": board_id, "ids": votes.tolist(), "rules": rules, "as_of": as_of}
        return {row[0]: row[1] for row in self._session.execute(text(EXCLUDED_AMONG), values)}

    def _judgements(
        self, board_id: int, outcomes: Sequence[str], condition: LiteralString, asked: tuple[Any, ...]
    ) -> tuple[Columns, Floats]:
        chances = dict.fromkeys(map(str, range(len(outcomes))), CHANCE)
        fields = {**JUDGEMENT_COLUMNS, **chances}
        packed = Packed("judgements", fields, "context_id", tuple(outcomes), condition=condition, asked=asked)
        columns = columns_of(self._session, packed, board_id, NO_END)
        return columns, np.stack([columns.pop(name).view(np.float64) for name in chances], axis=1)
