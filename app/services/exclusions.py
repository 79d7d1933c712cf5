"""Exclude votes, and take them back in."""

from __future__ import annotations

from typing import Any

from app.db.exclusions import ExclusionView
from app.db.models.exclusions import Exclusion
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.errors import Conflict, Invalid, Missing
from app.domain.exclusions import FILTER, SUPERSEDED, ExclusionDraft, VoteFilter, check
from app.services import votes


def add(uow: UnitOfWork, board: Board, draft: ExclusionDraft) -> ExclusionView:
    """Put a rule in force and commit."""
    check(draft)
    uow.votes.lock(board.id, counted=False)
    vote_id = None if draft.vote is None else votes.number(uow, board, draft.vote)
    found = None if draft.filter is None else _stored_filter(uow, board, draft.filter)
    rule = Exclusion(board_id=board.id, vote_id=vote_id, voter=draft.voter, filter=found, reason=draft.reason)
    exclusion = uow.exclusions.add(rule)
    uow.commit()
    return ExclusionView(exclusion, draft.vote)


def lift(uow: UnitOfWork, board: Board, exclusion_id: int) -> None:
    """End a rule and commit; lifting it again changes nothing."""
    uow.votes.lock(board.id, counted=False)
    exclusion = uow.exclusions.find(board.id, exclusion_id)
    if exclusion is None:
        raise Missing("unknown-exclusion", "the board has no such exclusion", got=exclusion_id)
    if exclusion.reason == SUPERSEDED:
        raise Conflict("superseded", "a vote that a later one of its voter replaced stays excluded")
    if exclusion.lifted_at is None:
        uow.exclusions.lift(exclusion)
    uow.commit()


def _stored_filter(uow: UnitOfWork, board: Board, wanted: VoteFilter) -> dict[str, Any]:
    document: dict[str, Any] = FILTER.dump_python(wanted, mode="json", exclude_none=True)
    outcomes = [category.name for category in board.config.categories]
    if wanted.outcome is not None and wanted.outcome not in outcomes:
        detail = f"the board has no outcome {wanted.outcome!r}"
        raise Invalid("unknown-outcome", detail, path="filter.outcome", expected=outcomes, got=wanted.outcome)
    if wanted.item is not None:
        known = uow.items.resolve(board.id, [wanted.item])
        if not known:
            detail = f"the board has no item {wanted.item!r}"
            raise Invalid("unknown-item", detail, path="filter.item", got=wanted.item)
        document["item"] = known[wanted.item].name
    return document
