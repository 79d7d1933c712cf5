"""Where a route leaves what the next request for the same address can be answered from."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import Scope

from app.api.kept import Kept
from app.domain.keys import Caller

NAME = "orthorank.slot"


@dataclass(slots=True)
class Slot:
    """What became known while a request was answered in full: the answer, and whose key came with it."""

    kept: Kept | None = None
    caller: Caller | None = None


def slot_of(scope: Scope) -> Slot | None:
    """The slot of a request; None where nobody is going to look into it."""
    slot: Slot | None = scope.get(NAME)
    return slot
