"""Leases as they are stored and as they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from app.db.assignments import Candidate, DrawnPair, PoolContext
from app.domain.acquire import AskedContext
from app.domain.boards import Board
from app.domain.contexts import Known, Wanted
from app.domain.errors import DomainError
from app.domain.features import FeatureReader, described
from app.services.acquire.drawing import Drawn

SENT, POOL = "acquire", "pool"


@dataclass(frozen=True, slots=True)
class Lessor:
    """Who hands pairs of one request out.

    Parameters
    ----------
    annotator : who gets them.
    until : when the leases end.
    policy : snapshot of the policy that they were drawn by.
    """

    annotator: str | None
    until: datetime
    policy: UUID | None

    @classmethod
    def of(cls, board: Board, annotator: str | None, *, policy: UUID | None, now: datetime) -> Lessor:
        """For leases that begin now."""
        return cls(annotator, now + timedelta(seconds=board.config.acquisition.lease_seconds), policy)

    def pair(self, drawn: Drawn, state: str, *, offer: int = 0, context: int = 0) -> DrawnPair:
        """What was drawn, as an assignment of an offer."""
        held = (None, None) if state == "open" else (self.annotator, self.until)
        sides = (drawn.left.id, drawn.right.id)
        return DrawnPair(uuid4(), offer, context, *sides, drawn.propensity, self.policy, held[0], state, held[1])

    def shown(
        self, number: UUID, context: tuple[str, Any], sides: tuple[Candidate, Candidate], propensity: float
    ) -> dict[str, Any]:
        """A lease on a context (name, payload) as its holder sees it."""
        row: dict[str, Any] = {"id": str(number), "context": context[0]}
        if context[1] is not None:
            row["payload"] = context[1]
        names = {"left": sides[0].name, "right": sides[1].name}
        return {**row, **names, "propensity": propensity, "expires_at": self.until.isoformat()}


def wanted(board: Board, asked: Sequence[AskedContext]) -> dict[str, Wanted]:
    """Contexts of a request, their features read as the board declares them."""
    reader = FeatureReader(board.config.features)
    found: dict[str, Wanted] = {}
    for number, each in enumerate(asked):
        try:
            features = None if each.features is None else reader.read(each.features)
        except DomainError as error:
            raise error.under(f"contexts.{number}") from None
        found[each.id] = Wanted(features, each.text, each.payload, offered=True)
    return found


def seen(board: Board, context: Known | PoolContext | Wanted) -> Mapping[str, Any]:
    """A context as the models see it."""
    return described(context.features or {}, context.text, board.config.features)
