"""Create, find, change and end boards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import DRAFT, Board, BoardDraft, check_change, config_of, merge, public_document
from app.domain.errors import Conflict, Invalid, Missing
from app.domain.keys import Caller
from app.domain.parsing import parse
from app.queue import Queue
from app.services.estimands import check_registered
from app.services.refit.snapshot import spec_hash


def create(uow: UnitOfWork, draft: BoardDraft) -> Board:
    """Create a board and commit."""
    check_registered(config_of(draft))
    title = draft.slug if draft.title is None else draft.title
    board = uow.boards.add(draft.slug, title, draft.public, config_of(draft))
    if board is None:
        raise Conflict("slug-taken", f"there is a board {draft.slug!r}", path="slug", got=draft.slug)
    uow.commit()
    return board


def find(uow: UnitOfWork, slug: str) -> Board:
    """The board of this slug."""
    board = uow.boards.find(slug)
    if board is None:
        raise Missing("unknown-board", f"there is no board {slug!r}", got=slug)
    return board


def visible(uow: UnitOfWork, caller: Caller | None) -> list[Board]:
    """The boards that a caller may read: all, its own and the public ones, or the public ones."""
    boards = uow.boards.list()
    if caller is not None and caller.has("read") and caller.board_id is None:
        return boards
    own = caller.board_id if caller is not None and caller.has("read") else None
    return [board for board in boards if board.public or board.id == own]


def change(uow: UnitOfWork, slug: str, patch: Mapping[str, Any], *, queue: Queue) -> Board:
    """Merge a patch into a board and commit; refused where stored votes would change their meaning.

    Another choice behind the numbers asks for a refit of a board with votes.
    """
    board = uow.boards.lock(find(uow, slug))
    if patch.get("slug", slug) != slug:
        raise Invalid("slug-fixed", "a board keeps its slug", path="slug", expected=slug, got=patch["slug"])
    draft = parse(DRAFT, merge({**public_document(board)}, {**patch, "slug": slug}))
    config = config_of(draft)
    if config.estimands != board.config.estimands:
        check_registered(config)
    stored = uow.boards.stored(board.id)
    check_change(board.config, config, stored)
    title = slug if draft.title is None else draft.title
    changed = uow.boards.save(replace(board, title=title, public=draft.public, config=config))
    if stored.votes and spec_hash(config) != spec_hash(board.config):
        uow.jobs.request(board.id)
        uow.after_commit(partial(queue.refit, board.id))
    uow.commit()
    return changed


def delete(uow: UnitOfWork, board: Board) -> None:
    """End a board and commit; its votes stay stored."""
    uow.boards.delete(board.id)
    uow.commit()
