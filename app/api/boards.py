"""Boards over HTTP."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Annotated, Any

from fastapi import Body

from app.api.deps import KnownCaller, MaybeCaller, OwnBoard, PortsOf, ReadableBoard, Work
from app.api.routing import api_router
from app.domain.boards import Board, BoardConfig, BoardDraft
from app.services import boards

router = api_router(prefix="/v1/boards", tag="boards")


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardView(BoardConfig):
    """A board with its configuration."""

    slug: str
    title: str
    public: bool
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class BoardList:
    """Boards by slug."""

    boards: list[BoardView]


@router.post("", status_code=201)
def create(draft: BoardDraft, work: Work, caller: KnownCaller) -> BoardView:
    """Create a board. Every field but `slug` has a default."""
    caller.require("admin", None)
    return _view(boards.create(work, draft))


@router.get("")
def list_boards(work: Work, caller: MaybeCaller) -> BoardList:
    """The boards that the caller may read; without a key the public ones."""
    return BoardList([_view(board) for board in boards.visible(work, caller)])


@router.get("/{board}")
def read(board: ReadableBoard) -> BoardView:
    """One board."""
    return _view(board)


@router.patch("/{board}")
def change(board: OwnBoard, patch: Annotated[dict[str, Any], Body()], work: Work, ports: PortsOf) -> BoardView:
    """Merge fields into a board (RFC 7396: null restores a default).

    `unit` and `outcomes` stay as they are once there are votes, declared features once there are contexts. Other
    choices behind the numbers take effect with a refit, which a change of them asks for.
    """
    changed = boards.change(work, board.slug, patch, queue=ports.queue)
    ports.news.publish(board.id, "board")
    return _view(changed)


@router.delete("/{board}", status_code=204)
def delete(board: OwnBoard, work: Work, ports: PortsOf) -> None:
    """End a board. Its votes stay stored, its slug becomes free."""
    boards.delete(work, board)
    ports.news.publish(board.id, "board")


def _view(board: Board) -> BoardView:
    config = {field.name: getattr(board.config, field.name) for field in fields(BoardConfig)}
    return BoardView(
        slug=board.slug,
        title=board.title,
        public=board.public,
        created_at=board.created_at,
        updated_at=board.updated_at,
        **config,
    )
