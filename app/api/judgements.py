"""Judgements over HTTP."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from app.api.deps import VotableBoard, Work
from app.api.routing import api_router
from app.domain.judgements import JudgementDraft
from app.services import judgements

router = api_router(prefix="/v1/boards/{board}/judgements", tag="judgements")


@dataclass(frozen=True, slots=True)
class JudgementBatch:
    """Judgements to store."""

    judgements: Annotated[list[JudgementDraft], Field(max_length=10_000)]


@dataclass(frozen=True, slots=True)
class JudgementCount:
    """How many were new, and how many known."""

    created: int
    known: int


@router.post("", status_code=201)
def record(board: VotableBoard, batch: JudgementBatch, work: Work) -> JudgementCount:
    """Store judges' predictions, all or none. They become features of the outcome model and never count as votes."""
    fates = Counter(judged.status for judged in judgements.record_all(work, board, batch.judgements))
    return JudgementCount(fates["created"], fates["duplicate"])
