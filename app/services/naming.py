"""What votes name becomes numbers: items, contexts and offers are looked up, and created where they are new."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid4

from app.db.items import ItemRef
from app.db.unit_of_work import Collision, UnitOfWork
from app.db.votes import Named
from app.domain.ballots import Ballot, digest
from app.domain.boards import Board
from app.domain.contexts import Known, Wanted, contradiction
from app.domain.errors import DomainError, Invalid
from app.domain.menus import ranking_of
from app.domain.votes import Row


def named(ballots: Sequence[Ballot | DomainError]) -> Named:
    """What the votes name, whether or not they turn out to be votes."""
    items, ids, contexts, slots = set[str](), list[UUID](), set[str](), set[tuple[str, str, str, str]]()
    menus = set[tuple[str, tuple[str, ...], str]]()
    for each in ballots:
        if isinstance(each, DomainError) or not _names(each, items):
            continue
        if each.id is not None:
            ids.append(each.id)
        if each.context is not None:
            contexts.add(each.context.id)
            if each.voter is not None and each.left is not None and each.right is not None:
                slots.add((each.context.id, each.left, each.right, each.voter))
            elif each.voter is not None and each.menu is not None:
                menus.add((each.context.id, tuple(each.menu), each.voter))
    return Named(items, ids, contexts, slots, menus)


def find_items(board: Board, rows: Sequence[Row], known: Mapping[str, ItemRef]) -> list[Row]:
    """The rows whose items are known, or may be created."""
    going = []
    for row in rows:
        error = (_find_both if row.ballot.menu is None else _find_menu)(row, known, board.config.open_items)
        if error is None:
            going.append(row)
        else:
            row.refuse(error)
    return going


def create_items(uow: UnitOfWork, board: Board, rows: Sequence[Row]) -> bool:
    """Create the items that are new; whether there are any.

    Raises
    ------
    Collision
        where another writer created one of them since they were looked for.
    """
    pairs = [row for row in rows if row.ranking is None]
    new = {row.left for row in pairs if not row.left_id} | {row.right for row in pairs if not row.right_id}
    new |= {name for row in rows for name, number in row.item_ids.items() if not number}
    if not new:
        return False
    uow.items.lock(board.id)
    known = uow.items.resolve(board.id, new)
    if any(known):
        raise Collision
    known = uow.items.create(board.id, new)
    for row in pairs:
        row.left_id = row.left_id or known[row.left].id
        row.right_id = row.right_id or known[row.right].id
    for row in rows:
        row.item_ids = {name: number or known[name].id for name, number in row.item_ids.items()}
    return True


def place(uow: UnitOfWork, board: Board, rows: Sequence[Row], stored: Mapping[str, Known]) -> tuple[list[Row], bool]:
    """The rows whose contexts are what they say, and whether anything was written for that."""
    wanted = _wanted(rows)
    if not wanted:
        return list(rows), False
    known, created = uow.contexts.ensure(board.id, wanted, stored)
    going = []
    for row in rows:
        if row.ballot.context is not None:
            context = known[row.ballot.context.id]
            row.context_id = context.id
            error = None if row.features is None else contradiction(Wanted(row.features), context)
            if error is not None:
                row.refuse(error.under("context"))
                continue
        going.append(row)
    newly = {known[name].id: each for name, each in wanted.items() if not known[name].offered}
    if newly:
        uow.contexts.learn(newly)
    offered = board.config.unit == "context" and _name_offers(uow, board, going)
    return going, bool(created or newly or offered)


def _find_both(row: Row, known: Mapping[str, ItemRef], open_items: bool) -> DomainError | None:
    ballot = row.ballot
    assert ballot.left is not None
    assert ballot.right is not None
    for path, name in (("left", ballot.left), ("right", ballot.right)):
        if name not in known and not open_items:
            return _unknown(name, path)
    left, right = known.get(ballot.left), known.get(ballot.right)
    row.left = ballot.left if left is None else left.name
    row.right = ballot.right if right is None else right.name
    if row.left == row.right:
        detail = "both names are of one item"
        return Invalid("same-item", detail, path="right", expected="another item", got=ballot.right)
    row.left_id = 0 if left is None else left.id
    row.right_id = 0 if right is None else right.id
    row.client_id = ballot.id or uuid4()
    row.digest = digest(ballot, (row.left, row.right), row.features)
    return None


def _find_menu(row: Row, known: Mapping[str, ItemRef], open_items: bool) -> DomainError | None:
    ballot = row.ballot
    assert ballot.menu is not None
    assert ballot.ranking is not None
    for at, name in enumerate(ballot.menu):
        if name not in known and not open_items:
            return _unknown(name, f"menu.{at}")
    own = {name: known[name].name for tier in (ballot.menu, *ballot.ranking) for name in tier if name in known}
    try:
        row.ranking = ranking_of(ballot.menu, ballot.ranking, ballot.kind, own)
    except DomainError as error:
        return error
    row.item_ids = {own.get(name, name): known[name].id if name in known else 0 for name in ballot.menu}
    row.client_id = ballot.id or uuid4()
    row.digest = digest(ballot, row.ranking, row.features)
    return None


def _names(ballot: Ballot, items: set[str]) -> bool:
    """Add the items that a ballot names; whether these are enough for a vote."""
    if ballot.left is not None and ballot.right is not None:
        items.update((ballot.left, ballot.right))
        return True
    if ballot.menu is None or ballot.ranking is None:
        return False
    items.update(ballot.menu, *ballot.ranking)
    return True


def _unknown(name: str, path: str) -> DomainError:
    return Invalid("unknown-item", f"the board has no item {name!r}", path=path, expected="an item", got=name)


def _wanted(rows: Sequence[Row]) -> dict[str, Wanted]:
    """The contexts of votes: they were offered to somebody, and so are no part of the pool."""
    features: dict[str, Mapping[str, Any] | None] = {}
    for row in rows:
        context = row.ballot.context
        if context is not None and features.get(context.id) is None:
            features[context.id] = row.features
    return {name: Wanted(known, offered=True) for name, known in features.items()}


def _name_offers(uow: UnitOfWork, board: Board, rows: Sequence[Row]) -> bool:
    """Store the offers that the rows name; whether they name any."""
    named = [(row, row.context_id, row.ballot.offer) for row in rows if row.ballot.offer is not None]
    pairs = {(context, offer) for _, context, offer in named if context is not None and offer is not None}
    offers = uow.contexts.ensure_offers(board.id, pairs) if pairs else {}
    for row, context, offer in named:
        if context is not None and offer is not None:
            row.offer_id = offers[context, offer]
    return bool(pairs)
