"""Items over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Path, Response

from app.api.deps import OwnBoard, PortsOf, ReadableBoard, Work
from app.api.routing import api_router
from app.db.items import ItemView as StoredItem
from app.domain.fields import Name
from app.domain.items import ItemDraft
from app.services import items

router = api_router(prefix="/v1/boards/{board}/items", tag="items")


@dataclass(frozen=True, slots=True)
class ItemView:
    """An item; `active_from` is null while it is retired."""

    item: str
    title: str
    organisation: str | None
    url: str | None
    licence: str | None
    aliases: list[str]
    cost: float
    label_cost: float
    active: bool
    active_from: datetime | None


@dataclass(frozen=True, slots=True)
class ItemList:
    """Items by name."""

    items: list[ItemView]


@router.put("/{item:path}", responses={201: {"model": ItemView, "description": "created"}})
def put(
    board: OwnBoard,
    item: Annotated[Name, Path()],
    work: Work,
    ports: PortsOf,
    response: Response,
    draft: ItemDraft | None = None,
) -> ItemView:
    """Create an item or replace its description; a field left out takes its default."""
    view, new = items.put(work, board, item, draft or ItemDraft())
    ports.news.publish(board.id, "board")
    response.status_code = 201 if new else 200
    return _view(view)


@router.get("")
def list_items(board: ReadableBoard, work: Work) -> ItemList:
    """The board's items, retired ones too."""
    return ItemList([_view(item) for item in work.items.view(board.id)])


def _view(view: StoredItem) -> ItemView:
    item = view.item
    return ItemView(
        item=item.name,
        title=item.title,
        organisation=item.organisation,
        url=item.url,
        licence=item.licence,
        aliases=view.aliases,
        cost=item.cost,
        label_cost=item.label_cost,
        active=view.active_from is not None,
        active_from=view.active_from,
    )
