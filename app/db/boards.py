"""Boards: the stored form and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Row, exists, func, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app.db.arrays import hashes, texts
from app.db.assignments import Standing
from app.db.keys import BEARERS, USE_RESOLUTION, Bearer
from app.db.locks import Lock, hold
from app.db.models.boards import Board as BoardRow
from app.db.models.contexts import Context
from app.db.models.judgements import Judgement
from app.db.models.votes import Vote
from app.db.together import together
from app.domain.boards import Board, BoardConfig, Stored, from_document, to_document
from app.domain.keys import Caller

KNOCK = text("""
SELECT boards.id, slug, title, public, config, boards.created_at, boards.updated_at, keys.id AS key_id, scopes,
       keys.board_id, last_used_at IS NULL OR last_used_at < now() - CAST(:resolution AS interval) AS stale,
       (SELECT id FROM snapshots WHERE board_id = boards.id ORDER BY computed_at DESC LIMIT 1) AS snapshot_id,
       (SELECT json_agg(json_build_array(items.id, name, label_cost))
        FROM items JOIN item_spans ON items.id = item_id AND active_to IS NULL
        WHERE items.board_id = boards.id) AS candidates
FROM (SELECT) AS nothing
LEFT JOIN boards ON slug = :slug AND deleted_at IS NULL
LEFT JOIN keys ON hash = :hash AND revoked_at IS NULL
""")


class Knock(NamedTuple):
    """A board, None where the slug is nobody's; whose key came, if any is known; and what a draw depends on."""

    board: Board | None
    bearer: Bearer | None
    standing: Standing


COUNTED = (Vote, Judgement, Context)
CHANGED = text("SELECT updated_at FROM boards WHERE id = :board")

VERSIONS = text("""
SELECT slug, id, updated_at FROM boards WHERE slug = ANY(CAST(:slugs AS text[])) AND deleted_at IS NULL
""")


class Version(NamedTuple):
    """Which board has a slug, and when it was changed last."""

    id: int
    updated_at: datetime


class BoardRepository:
    """Boards that are not deleted."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def add(self, slug: str, title: str, public: bool, config: BoardConfig) -> Board | None:
        """Create a board; None where the slug is taken."""
        values = {"slug": slug, "title": title, "public": public, "config": to_document(config)}
        statement = insert(BoardRow).values(values).on_conflict_do_nothing().returning(BoardRow)
        row = self._session.scalars(statement).one_or_none()
        return None if row is None else _board(row)

    def find(self, slug: str) -> Board | None:
        """The board of this slug."""
        row = self._row(slug)
        return None if row is None else _board(row)

    def knock(self, slug: str, fingerprint: bytes | None) -> Knock:
        """The board of this slug, whose key comes for it, and what a draw on it depends on, in one statement."""
        values = {"slug": slug, "hash": fingerprint, "resolution": USE_RESOLUTION}
        row = self._session.execute(KNOCK, values).one()
        bearer = None if row.key_id is None else Bearer(Caller(row.key_id, row.scopes, row.board_id), row.stale)
        standing = Standing.of(row.snapshot_id, row.candidates or [])
        return Knock(None if row.id is None else _board(row), bearer, standing)

    def knock_all(
        self, slugs: Iterable[str], fingerprints: Iterable[bytes]
    ) -> tuple[dict[str, Version], dict[bytes, Bearer]]:
        """Those of the slugs that boards have, and whose keys come for them: enough to know a board in memory by."""
        values = {"hashes": hashes(fingerprints), "resolution": USE_RESOLUTION}
        boards, keys = together(self._session, [(VERSIONS, {"slugs": texts(slugs)}), (BEARERS, values)])
        bearers = {bytes(row[0]): Bearer(Caller(row[1], row[2], row[3]), row[4]) for row in keys}
        return {row[0]: Version(row[1], row[2]) for row in boards}, bearers

    def get(self, board_id: int) -> Board | None:
        """The board of this number, deleted or not."""
        row = self._session.get(BoardRow, board_id)
        return None if row is None else _board(row)

    def fresh(self, board: Board) -> Board:
        """The board as it is now: the same one unless it was changed since it was read."""
        return self.as_of(board, self._session.execute(CHANGED, {"board": board.id}).scalar_one())

    def as_of(self, board: Board, changed_at: datetime) -> Board:
        """What `fresh` returns, once it is known when the board was changed."""
        if changed_at == board.updated_at:
            return board
        return _board(self._session.get_one(BoardRow, board.id, populate_existing=True))

    def list(self, board_ids: Sequence[int] | None = None) -> list[Board]:
        """All boards, or those of these numbers, by slug."""
        query = select(BoardRow).where(BoardRow.deleted_at.is_(None)).order_by(BoardRow.slug)
        if board_ids is not None:
            query = query.where(BoardRow.id.in_(board_ids))
        return [_board(row) for row in self._session.scalars(query)]

    def lock(self, board: Board) -> Board:
        """The board as it is now, held against other changes of it and against votes until the transaction ends."""
        hold(self._session, Lock.VOTES, board.id)
        return _board(self._session.get_one(BoardRow, board.id, populate_existing=True))

    def save(self, board: Board) -> Board:
        """Write a changed board back."""
        row = self._session.get_one(BoardRow, board.id)
        row.slug, row.title, row.public, row.config = board.slug, board.title, board.public, to_document(board.config)
        self._session.flush()
        return _board(row)

    def touch(self, board_id: int) -> None:
        """Date a change of what belongs to the board: draws, and answers kept, are by the board as it was dated."""
        row = self._session.get_one(BoardRow, board_id)
        row.updated_at = func.now()
        self._session.flush()

    def delete(self, board_id: int) -> None:
        """Date the end of a board; its votes stay."""
        self._session.get_one(BoardRow, board_id).deleted_at = func.now()
        self._session.flush()

    def stored(self, board_id: int) -> Stored:
        """What of the board is there."""
        found = (self._session.scalar(select(exists().where(each.board_id == board_id))) for each in COUNTED)
        votes, judgements, contexts = map(bool, found)
        return Stored(votes=votes, judgements=judgements, contexts=contexts)

    def _row(self, slug: str) -> BoardRow | None:
        query = select(BoardRow).where(BoardRow.slug == slug, BoardRow.deleted_at.is_(None))
        return self._session.scalars(query).one_or_none()


def _board(row: BoardRow | Row[Any]) -> Board:
    return Board(
        id=row.id,
        slug=row.slug,
        title=row.title,
        public=row.public,
        config=from_document(row.config),
        created_at=row.created_at,
        updated_at=row.updated_at,
    )
