"""Contexts and their named offers, written in bulk and always in the order of their ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import uuid4

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from app.db.arrays import document, plain, texts
from app.db.models.contexts import Offer
from app.domain.contexts import Known, Wanted

CREATE = text("""
INSERT INTO contexts (board_id, external_id, features, text, payload, offered)
SELECT :board, sent.*
FROM unnest(CAST(:ids AS text[]), CAST(:features AS jsonb[]), CAST(:texts AS text[]), CAST(:payloads AS jsonb[]),
            CAST(:offered AS boolean[])) AS sent
ON CONFLICT DO NOTHING
RETURNING external_id, id
""")

LEARN = text("""
WITH sent AS (
    SELECT * FROM unnest(CAST(:ids AS bigint[]), CAST(:texts AS text[]), CAST(:payloads AS jsonb[]),
                         CAST(:offered AS boolean[])) AS sent (id, text, payload, offered)
), held AS (
    SELECT contexts.id FROM contexts JOIN sent USING (id) ORDER BY contexts.id FOR NO KEY UPDATE OF contexts
)
UPDATE contexts
SET text = coalesce(contexts.text, sent.text), payload = coalesce(contexts.payload, sent.payload),
    offered = contexts.offered OR sent.offered
FROM sent JOIN held USING (id)
WHERE contexts.id = sent.id
""")

OFFER = text("""
WITH sent AS (
    SELECT * FROM unnest(CAST(:ids AS text[]), CAST(:features AS jsonb[]), CAST(:texts AS text[]),
                         CAST(:payloads AS jsonb[]), CAST(:offers AS text[]))
         AS sent (name, features, text, payload, offer)
), made AS (
    INSERT INTO contexts (board_id, external_id, features, text, payload, offered)
    SELECT :board, name, features, text, payload, TRUE FROM sent
    ON CONFLICT DO NOTHING
    RETURNING id, external_id AS name
), known AS (
    SELECT id, external_id AS name, features, text, payload, offered
    FROM contexts WHERE board_id = :board AND external_id = ANY(CAST(:ids AS text[]))
), found AS (
    SELECT id, name FROM made UNION ALL SELECT id, name FROM known
), given AS (
    INSERT INTO offers (board_id, context_id, external_id, source, created_at)
    SELECT :board, found.id, sent.offer, :source, statement_timestamp() FROM found JOIN sent USING (name)
    RETURNING id, context_id
)
SELECT found.name, given.id, found.id, known.features, known.text, known.payload, known.offered
FROM found JOIN given ON context_id = found.id LEFT JOIN known ON known.id = found.id
""")

# One by one: a plan made while there were few contexts, and kept, would read all those of the board.
FIND = text("""
SELECT known.* FROM unnest(CAST(:ids AS text[])) AS sent (name)
CROSS JOIN LATERAL (
    SELECT external_id, id, features, text, payload, offered
    FROM contexts WHERE board_id = :board AND external_id = sent.name LIMIT 1
) AS known
""")

NAME_OFFERS = text("""
INSERT INTO offers (board_id, context_id, external_id, source)
SELECT :board, sent.*, 'vote' FROM unnest(CAST(:contexts AS bigint[]), CAST(:names AS text[])) AS sent
ON CONFLICT DO NOTHING
""")


class Ensured(NamedTuple):
    """All contexts wanted as they are stored now, and which of them are new."""

    known: dict[str, Known]
    created: set[str]


class Offered(NamedTuple):
    """A context as it was when it was offered, the number of the offer, and whether the context is new."""

    context: Known
    offer: int
    created: bool


class ContextRepository:
    """Contexts of all boards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, board_id: int, external_ids: Iterable[str]) -> dict[str, Known]:
        """Those of the contexts that are stored."""
        rows = self._session.execute(FIND, {"board": board_id, "ids": texts(external_ids)})
        return {row[0]: Known(*row[1:]) for row in rows}

    def ensure(self, board_id: int, wanted: Mapping[str, Wanted], known: Mapping[str, Known] | None = None) -> Ensured:
        """Store the contexts that are not there; the caller compares the others with what is wanted.

        Parameters
        ----------
        known : those that are stored, where they were looked up in this transaction.
        """
        known = self.find(board_id, wanted) if known is None else dict(known)
        missing = {name: wanted[name] for name in sorted(wanted.keys() - known.keys())}
        if not missing:
            return Ensured(known, set())
        created = self._create(board_id, missing)
        others = missing.keys() - created.keys()
        return Ensured(known | created | (self.find(board_id, others) if others else {}), set(created))

    def offer(self, board_id: int, wanted: Mapping[str, Wanted], *, source: str) -> dict[str, Offered]:
        """One draw opportunity of each context, stored where it is not there; the caller compares known ones.

        Offers are dated after the items were read, not as the work began: an item drawn was active by then.
        """
        found: dict[str, Offered] = {}
        # A context that another writer stored meanwhile is neither made nor seen by the same statement.
        while missing := {name: wanted[name] for name in sorted(wanted.keys() - found.keys())}:
            values = {**_columns(missing), "board": board_id, "source": source}
            values["offers"] = texts(str(uuid4()) for _ in missing)
            for name, offer, number, *stored in self._session.execute(OFFER, values):
                created = stored[-1] is None
                context = _known(number, wanted[name]) if created else Known(number, *stored)
                found[name] = Offered(context, offer, created)
        return found

    def learn(self, wanted: Mapping[int, Wanted]) -> None:
        """Write what known contexts did not say yet (by their numbers): a text, a payload, that they are offered."""
        rows = sorted(wanted.items(), key=lambda row: row[0])
        values = {
            "ids": plain(number for number, _ in rows),
            "texts": texts(each.text for _, each in rows),
            "payloads": texts(document(each.payload) for _, each in rows),
            "offered": plain(each.offered for _, each in rows),
        }
        self._session.execute(LEARN, values)

    def ensure_offers(self, board_id: int, wanted: Iterable[tuple[int, str]]) -> dict[tuple[int, str], int]:
        """The numbers of named offers (context, name), stored where they are new."""
        pairs = sorted(set(wanted))
        contexts, names = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        self._session.execute(NAME_OFFERS, {"board": board_id, "contexts": plain(contexts), "names": texts(names)})
        query = select(Offer.context_id, Offer.external_id, Offer.id).where(
            Offer.board_id == board_id, Offer.context_id == func.any(contexts), Offer.external_id == func.any(names)
        )
        return {(context, name): number for context, name, number in self._session.execute(query)}

    def _create(self, board_id: int, wanted: Mapping[str, Wanted]) -> dict[str, Known]:
        offered = plain(each.offered for each in wanted.values())
        values = {**_columns(wanted), "board": board_id, "offered": offered}
        return {name: _known(number, wanted[name]) for name, number in self._session.execute(CREATE, values)}


def _columns(wanted: Mapping[str, Wanted]) -> dict[str, str]:
    return {
        "ids": texts(wanted),
        "features": texts(document(each.features or {}) for each in wanted.values()),
        "texts": texts(each.text for each in wanted.values()),
        "payloads": texts(document(each.payload) for each in wanted.values()),
    }


def _known(number: int, wanted: Wanted) -> Known:
    return Known(number, wanted.features or {}, wanted.text, wanted.payload, wanted.offered)
