"""Name items, describe them, retire them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from app.db.items import ItemRef, ItemView
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.errors import Conflict
from app.domain.items import ItemDraft, check_span


def put(uow: UnitOfWork, board: Board, name: str, draft: ItemDraft) -> tuple[ItemView, bool]:
    """Create an item or replace its description, and commit; the item and whether it is new.

    Other costs ask for a refit of a board with votes, as another active set does: policies rest on them.
    """
    check_span(draft)
    _lock(uow, board)
    new = _check_names(uow, board, name, draft)
    before = None if new else _weight(uow.items.view(board.id, name)[0])
    fields: dict[str, Any] = {"title": draft.title or name, "organisation": draft.organisation, "url": draft.url}
    fields |= {"licence": draft.licence, "cost": draft.cost, "label_cost": draft.label_cost}
    item = uow.items.put(board.id, name, fields)
    uow.items.rename(item, draft.names(name))
    if draft.active:
        uow.items.activate(item.id, draft.active_from)
    else:
        uow.items.retire(item.id)
    view = uow.items.view(board.id, name)[0]
    after = _Weight(draft.active, (draft.cost, draft.label_cost))
    if before != after:
        uow.boards.touch(board.id)
    if before is not None and before.costs != after.costs and uow.boards.stored(board.id).votes:
        # The next sweep wakes a worker: costs are often changed one after the other.
        uow.jobs.request(board.id)
    uow.commit()
    return view, new


def ensure(uow: UnitOfWork, board: Board, names: Iterable[str], *, active_from: datetime | None) -> dict[str, ItemRef]:
    """The items of these names, created where they are new and then active from a given time or now; commits."""
    wanted = set(names)
    _lock(uow, board)
    known = uow.items.resolve(board.id, wanted)
    new = wanted - known.keys()
    created = uow.items.create(board.id, new, active_from=active_from) if new else {}
    if created:
        uow.boards.touch(board.id)
    uow.commit()
    return known | created


class _Weight(NamedTuple):
    """What draws know of an item: whether it can be drawn, and at which costs."""

    active: bool
    costs: tuple[float, float]


def _weight(view: ItemView) -> _Weight:
    return _Weight(view.active_from is not None, (view.item.cost, view.item.label_cost))


def _lock(uow: UnitOfWork, board: Board) -> None:
    """Let no item be named beside, and no draw be made by what the items were before."""
    uow.boards.lock(board)
    uow.items.lock(board.id)


def _check_names(uow: UnitOfWork, board: Board, name: str, draft: ItemDraft) -> bool:
    names = draft.names(name)
    known = uow.items.resolve(board.id, names)
    for other in names:
        if other in known and known[other].name != name:
            path = None if other == name else "aliases"
            detail = f"{other!r} names item {known[other].name!r} already"
            raise Conflict("name-taken", detail, path=path, got=other)
    return name not in known
