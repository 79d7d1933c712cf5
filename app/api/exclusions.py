"""Exclusions over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from app.api.deps import OwnBoard, Work
from app.api.pages import Cursor, Limit, Number, cursor_after, position
from app.api.routing import api_router
from app.db.exclusions import ExclusionView as StoredExclusion
from app.domain.exclusions import ExclusionDraft
from app.services import exclusions

router = api_router(prefix="/v1/boards/{board}/exclusions", tag="exclusions")


@dataclass(frozen=True, slots=True)
class ExclusionView:
    """A rule in force."""

    id: int
    vote: UUID | None
    voter: str | None
    filter: dict[str, Any] | None
    reason: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ExclusionPage:
    """Rules, oldest first."""

    exclusions: list[ExclusionView]
    next: str | None


@router.post("", status_code=201)
def add(board: OwnBoard, draft: ExclusionDraft, work: Work) -> ExclusionView:
    """Exclude one vote, all votes of a voter (later ones too) or all that a filter finds."""
    return _view(exclusions.add(work, board, draft))


@router.get("")
def list_exclusions(board: OwnBoard, work: Work, limit: Limit = 100, cursor: Cursor = None) -> ExclusionPage:
    """The rules in force."""
    found = work.exclusions.page(board.id, after=position(cursor), limit=limit)
    views = [_view(each) for each in found]
    return ExclusionPage(views, cursor_after([view.id for view in views], limit))


@router.delete("/{exclusion}", status_code=204)
def lift(board: OwnBoard, exclusion: Number, work: Work) -> None:
    """Take votes back in."""
    exclusions.lift(work, board, exclusion)


def _view(view: StoredExclusion) -> ExclusionView:
    rule = view.exclusion
    return ExclusionView(rule.id, view.vote, rule.voter, rule.filter, rule.reason, rule.created_at)
