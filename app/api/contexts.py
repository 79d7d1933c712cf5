"""Contexts over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from app.api.deps import VotableBoard, Work
from app.api.routing import api_router
from app.domain.contexts import ContextDraft
from app.services import contexts

router = api_router(prefix="/v1/boards/{board}/contexts", tag="contexts")


@dataclass(frozen=True, slots=True)
class ContextBatch:
    """Contexts to register."""

    contexts: Annotated[list[ContextDraft], Field(max_length=10_000)]


@dataclass(frozen=True, slots=True)
class ContextCount:
    """How many were new, and how many known."""

    created: int
    known: int


@router.post("", status_code=201)
def register(board: VotableBoard, batch: ContextBatch, work: Work) -> ContextCount:
    """Register contexts, all or none: in the pool, or with `offered` as shown to voters already."""
    registered = contexts.register(work, board, batch.contexts)
    return ContextCount(registered.created, registered.known)
