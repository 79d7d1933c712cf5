"""Judgements, written in bulk in the order of what they judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from sqlalchemy import text
from sqlalchemy.orm import Session

from app.db.arrays import plain, texts

Subject = tuple[int, str, int, int]
"""Context, judge, left, right: judged once."""

CREATE = text("""
INSERT INTO judgements (board_id, context_id, judge, left_id, right_id, probabilities, created_at)
SELECT :board, sent.*, clock_timestamp()
FROM unnest(CAST(:contexts AS bigint[]), CAST(:judges AS text[]), CAST(:lefts AS bigint[]), CAST(:rights AS bigint[]),
            CAST(:probabilities AS jsonb[])) AS sent
ON CONFLICT DO NOTHING
RETURNING context_id, judge, left_id, right_id
""")

FIND = text("""
SELECT context_id, judge, left_id, right_id, probabilities
FROM unnest(CAST(:contexts AS bigint[]), CAST(:judges AS text[]), CAST(:lefts AS bigint[]), CAST(:rights AS bigint[]))
     AS subject (context_id, judge, left_id, right_id)
JOIN judgements USING (context_id, judge, left_id, right_id)
WHERE board_id = :board
""")


class JudgementRepository:
    """Judgements of all boards.

    Whoever adds some holds the lock of those who write votes: so none is dated before the marks of a refit that did not
    see it.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def create(self, board_id: int, judged: Mapping[Subject, Mapping[str, float]]) -> set[Subject]:
        """Store judgements of subjects that have none; which they were."""
        subjects = sorted(judged)
        documents = texts(orjson.dumps(judged[subject]).decode() for subject in subjects)
        values = _columns(board_id, subjects) | {"probabilities": documents}
        return {(row[0], row[1], row[2], row[3]) for row in self._session.execute(CREATE, values)}

    def find(self, board_id: int, subjects: Sequence[Subject]) -> dict[Subject, dict[str, float]]:
        """The stored judgements of these subjects."""
        rows = self._session.execute(FIND, _columns(board_id, subjects))
        return {(row[0], row[1], row[2], row[3]): row[4] for row in rows}


def _columns(board_id: int, subjects: Sequence[Subject]) -> dict[str, Any]:
    return {
        "board": board_id,
        "contexts": plain(subject[0] for subject in subjects),
        "judges": texts(subject[1] for subject in subjects),
        "lefts": plain(subject[2] for subject in subjects),
        "rights": plain(subject[3] for subject in subjects),
    }
