"""Contexts and their named offers, written in bulk and always in the order of their ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import orjson
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from app.db.models import Context, Offer
from app.domain.contexts import Known, Wanted

CREATE = text("""
INSERT INTO contexts (board_id, external_id, features, text, payload, offered)
SELECT :board, sent.*
FROM unnest(CAST(:ids AS text[]), CAST(:features AS jsonb[]), CAST(:texts AS text[]), CAST(:payloads AS jsonb[]),
            CAST(:offered AS boolean[])) AS sent
ON CONFLICT DO NOTHING
RETURNING external_id
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

NAME_OFFERS = text("""
INSERT INTO offers (board_id, context_id, external_id, source)
SELECT :board, sent.*, 'vote' FROM unnest(CAST(:contexts AS bigint[]), CAST(:names AS text[])) AS sent
ON CONFLICT DO NOTHING
""")


class Ensured(NamedTuple):
    """All contexts wanted as they are stored now, and which of them are new."""

    known: dict[str, Known]
    created: set[str]


class ContextRepository:
    """Contexts of all boards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def find(self, board_id: int, external_ids: Iterable[str]) -> dict[str, Known]:
        """Those of the contexts that are stored."""
        query = select(
            Context.external_id, Context.id, Context.features, Context.text, Context.payload, Context.offered
        ).where(Context.board_id == board_id, Context.external_id == func.any(list(external_ids)))
        return {row[0]: Known(*row[1:]) for row in self._session.execute(query)}

    def ensure(self, board_id: int, wanted: Mapping[str, Wanted]) -> Ensured:
        """Store the contexts that are not there; the caller compares the others with what is wanted."""
        known = self.find(board_id, wanted)
        missing = sorted(wanted.keys() - known.keys())
        if not missing:
            return Ensured(known, set())
        created = self._create(board_id, {name: wanted[name] for name in missing})
        return Ensured(known | self.find(board_id, missing), created)

    def learn(self, wanted: Mapping[int, Wanted]) -> None:
        """Write what known contexts did not say yet (by their numbers): a text, a payload, that they are offered."""
        rows = sorted(wanted.items(), key=lambda row: row[0])
        values = {
            "ids": [number for number, _ in rows],
            "texts": [each.text for _, each in rows],
            "payloads": [_document(each.payload) for _, each in rows],
            "offered": [each.offered for _, each in rows],
        }
        self._session.execute(LEARN, values)

    def ensure_offers(self, board_id: int, wanted: Iterable[tuple[int, str]]) -> dict[tuple[int, str], int]:
        """The numbers of named offers (context, name), stored where they are new."""
        pairs = sorted(set(wanted))
        contexts, names = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        self._session.execute(NAME_OFFERS, {"board": board_id, "contexts": contexts, "names": names})
        query = select(Offer.context_id, Offer.external_id, Offer.id).where(
            Offer.board_id == board_id, Offer.context_id == func.any(contexts), Offer.external_id == func.any(names)
        )
        return {(context, name): number for context, name, number in self._session.execute(query)}

    def _create(self, board_id: int, wanted: Mapping[str, Wanted]) -> set[str]:
        values = {
            "board": board_id,
            "ids": list(wanted),
            "features": [_document(each.features or {}) for each in wanted.values()],
            "texts": [each.text for each in wanted.values()],
            "payloads": [_document(each.payload) for each in wanted.values()],
            "offered": [each.offered for each in wanted.values()],
        }
        return set(self._session.execute(CREATE, values).scalars())


def _document(value: object) -> str | None:
    return None if value is None else orjson.dumps(value).decode()
