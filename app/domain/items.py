"""Items: what is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field

from app.domain.errors import Invalid
from app.domain.fields import Amount, Flag, Line, Moment, Name


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDraft:
    """An item as it is put: `cost` is that of deployment, `label_cost` that of a label (½: a pair costs one)."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    title: Line | None = None
    organisation: Line | None = None
    url: Annotated[str, Field(strict=True, max_length=2_000, pattern=r"^https?://[^\x00-\x20]+$")] | None = None
    licence: Line | None = None
    aliases: Annotated[list[Name], Field(max_length=100)] | None = None
    cost: Amount = 0.0
    label_cost: Amount = 0.5
    active: Flag = True
    active_from: Moment | None = None

    def names(self, name: str) -> list[str]:
        """All names of the item, its own first, each once."""
        return list(dict.fromkeys([name, *(self.aliases or [])]))


def check_span(draft: ItemDraft) -> None:
    """Refuse a start for an item that is not active."""
    if draft.active_from is not None and not draft.active:
        detail = "an item that is not active has no start"
        raise Invalid("inactive-item", detail, path="active_from", got=draft.active_from.isoformat())
