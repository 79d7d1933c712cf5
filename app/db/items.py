"""Items, their names and the times during which they could be drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import delete, func, select, text
from sqlalchemy.dialects.postgresql import aggregate_order_by, insert
from sqlalchemy.orm import Session

from app.db.arrays import plain, texts
from app.db.locks import Lock, hold
from app.db.models.items import Item, ItemName, ItemSpan

RESOLVE = text("""
SELECT item_names.name, items.id, items.name FROM item_names JOIN items ON items.id = item_id
WHERE item_names.board_id = :board AND item_names.name = ANY(CAST(:names AS text[]))
""")

NAMES = text("""
SELECT item_names.board_id, item_names.name, items.id, items.name FROM item_names JOIN items ON items.id = item_id
WHERE item_names.board_id = ANY(CAST(:boards AS bigint[])) LIMIT :most
""")

CREATE = text("""
WITH named AS (
    INSERT INTO items (board_id, name, title, cost, label_cost)
    SELECT :board, name, name, 0, 0.5 FROM unnest(CAST(:names AS text[])) AS name
    RETURNING id, name
), written AS (
    INSERT INTO item_names (board_id, name, item_id) SELECT :board, name, id FROM named
), spanned AS (
    INSERT INTO item_spans (item_id, active_from) SELECT id, coalesce(:active_from, now()) FROM named
)
SELECT id, name FROM named
""")


class ItemRef(NamedTuple):
    """An item as votes know it."""

    id: int
    name: str


class ItemLabel(NamedTuple):
    """How people read an item."""

    name: str
    title: str
    organisation: str | None
    url: str | None


class ItemView(NamedTuple):
    """An item with its aliases and, while it is active, since when."""

    item: Item
    aliases: list[str]
    active_from: datetime | None


class ItemRepository:
    """Items of all boards."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def lock(self, board_id: int) -> None:
        """Let nobody else name items of the board until the transaction ends."""
        hold(self._session, Lock.ITEMS, board_id)

    def resolve(self, board_id: int, names: Iterable[str]) -> dict[str, ItemRef]:
        """The items behind those of the names, own names or aliases, that are known."""
        rows = self._session.execute(RESOLVE, {"board": board_id, "names": texts(names)})
        return {name: ItemRef(item_id, own) for name, item_id, own in rows}

    def names(self, board_ids: Iterable[int], *, most: int) -> dict[int, dict[str, ItemRef]]:
        """The items behind all names on the boards, for at most so many names."""
        found: defaultdict[int, dict[str, ItemRef]] = defaultdict(dict)
        for board_id, name, item_id, own in self._session.execute(NAMES, {"boards": plain(board_ids), "most": most}):
            found[board_id][name] = ItemRef(item_id, own)
        return found

    def create(self, board_id: int, names: Iterable[str], *, active_from: datetime | None = None) -> dict[str, ItemRef]:
        """Add items of new names, active from then or from now; call `lock` first."""
        values = {"board": board_id, "names": sorted(names), "active_from": active_from}
        return {name: ItemRef(item_id, name) for item_id, name in self._session.execute(CREATE, values)}

    def put(self, board_id: int, name: str, values: Mapping[str, Any]) -> Item:
        """Add the item of this name, or write its fields."""
        row = {"board_id": board_id, "name": name, **values}
        statement = insert(Item).values(row)
        statement = statement.on_conflict_do_update(index_elements=["board_id", "name"], set_=dict(values))
        options = {"populate_existing": True}
        return self._session.scalars(statement.returning(Item), execution_options=options).one()

    def rename(self, item: Item, names: Iterable[str]) -> None:
        """Make these the names that votes may use for the item."""
        self._session.execute(delete(ItemName).where(ItemName.item_id == item.id))
        rows = [{"board_id": item.board_id, "name": name, "item_id": item.id} for name in names]
        self._session.execute(insert(ItemName), rows)

    def activate(self, item_id: int, active_from: datetime | None) -> None:
        """Open a span from now, or move the start of the open one where a start is given.

        Now is when the statement runs: whoever drew while the transaction waited for its lock did so before.
        """
        span = self._open_span(item_id)
        if span is None:
            self._session.add(ItemSpan(item_id=item_id, active_from=active_from or func.statement_timestamp()))
        elif active_from is not None:
            span.active_from = active_from
        self._session.flush()

    def retire(self, item_id: int) -> None:
        """Close the open span, if there is one."""
        span = self._open_span(item_id)
        if span is not None:
            span.active_to = func.greatest(func.statement_timestamp(), span.active_from)
        self._session.flush()

    def view(self, board_id: int, name: str | None = None) -> list[ItemView]:
        """The board's items, or the one of this name, by name."""
        names = func.array_agg(aggregate_order_by(ItemName.name, ItemName.name))
        aliases = select(names).where(ItemName.item_id == Item.id, ItemName.name != Item.name).scalar_subquery()
        since = select(ItemSpan.active_from).where(ItemSpan.item_id == Item.id, ItemSpan.active_to.is_(None))
        query = select(Item, aliases, since.scalar_subquery()).where(Item.board_id == board_id).order_by(Item.name)
        if name is not None:
            query = query.where(Item.name == name)
        return [ItemView(item, found or [], start) for item, found, start in self._session.execute(query)]

    def labels(self, board_id: int) -> list[ItemLabel]:
        """How the board's items are read, by name."""
        query = select(Item.name, Item.title, Item.organisation, Item.url).where(Item.board_id == board_id)
        return [ItemLabel(*row) for row in self._session.execute(query.order_by(Item.name))]

    def costs(self, board_id: int) -> dict[str, float]:
        """What deploying each of the board's items costs, by name."""
        query = select(Item.name, Item.cost).where(Item.board_id == board_id).order_by(Item.name)
        return {row.name: row.cost for row in self._session.execute(query)}

    def _open_span(self, item_id: int) -> ItemSpan | None:
        query = select(ItemSpan).where(ItemSpan.item_id == item_id, ItemSpan.active_to.is_(None))
        return self._session.scalars(query).one_or_none()
