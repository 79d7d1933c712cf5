"""The board that an import goes to: as it is, or as the file suggests it."""

from __future__ import annotations

from collections.abc import Sequence

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import DRAFT, Board, BoardConfig, BoardDraft, config_of, merge, public_document
from app.domain.features import Feature
from app.domain.parsing import parse
from app.formats.format import FEATURE
from app.formats.plan import Plan
from app.formats.rows import UnusableFile
from app.services import boards
from app.services.imports.orders import Order


def config_for(order: Order, plan: Plan, board: Board | None) -> BoardConfig:
    """The configuration that the file's rows will meet.

    Raises
    ------
    UnusableFile
        where an existing board is not as the order wants it.
    DomainError
        where no board can be as the order wants it.
    """
    if board is None:
        return config_of(_draft(order, plan))
    asked, stored = order.board_fields, public_document(board)
    for name in asked:
        if merge(stored, {name: asked[name]}) != stored:
            raise UnusableFile(f"board {board.slug!r} exists and has other {name}: {stored.get(name)!r}")
    _check_features(order, board.config.features)
    return board.config


def open_board(uow: UnitOfWork, order: Order, plan: Plan) -> Board:
    """Create the board that the file suggests, and commit."""
    return boards.create(uow, _draft(order, plan))


def _draft(order: Order, plan: Plan) -> BoardDraft:
    features = [
        {"name": feature.name, "kind": feature.kind}
        | ({"dimensions": feature.dimensions} if feature.dimensions is not None else {})
        for feature in plan.features
    ]
    suggested = {"outcomes": plan.request.format.outcomes, "features": features, "open_items": True}
    return parse(DRAFT, merge(suggested, {**order.board_fields, "slug": order.board}))


def _check_features(order: Order, declared: Sequence[Feature]) -> None:
    """Features that the caller maps must be the board's; those that a format offers are taken where they are."""
    kinds = {feature.name: feature.kind for feature in declared}
    for name in order.request.fields:
        feature = name.removeprefix(FEATURE)
        if feature != name and feature not in kinds:
            raise UnusableFile(f"board {order.board!r} declares no feature {feature!r}; it has {sorted(kinds)}")
    for name, kind in order.request.feature_kinds.items():
        if kinds.get(name) != kind:
            raise UnusableFile(f"feature {name!r} of board {order.board!r} is {kinds.get(name, 'not declared')}")
