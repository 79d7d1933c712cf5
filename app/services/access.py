"""Who may do what: keys against boards."""

from __future__ import annotations

from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.errors import Missing, Unauthenticated
from app.domain.keys import Caller, Scope, fingerprint
from app.services import keys

BEARER = "bearer "


def identify(uow: UnitOfWork, authorization: str | None) -> Caller | None:
    """Who sends this Authorization header; None where there is none."""
    secret = _secret(authorization)
    return None if secret is None else keys.authenticate(uow, secret)


def knock(uow: UnitOfWork, slug: str, authorization: str | None) -> tuple[Caller | None, Board | None]:
    """Who sends this Authorization header, and the board asked for: `identify` and a look-up in one round trip."""
    secret = _secret(authorization)
    board, bearer = uow.boards.knock(slug, None if secret is None else fingerprint(secret))
    return None if secret is None else keys.admitted(uow, bearer), board


def known(caller: Caller | None) -> Caller:
    """The caller; refused where there is none."""
    if caller is None:
        raise Unauthenticated("key-missing", "expected 'Authorization: Bearer <key>'")
    return caller


def admit(uow: UnitOfWork, slug: str, caller: Caller | None, scope: Scope) -> Board:
    """The board, opened to the caller for this scope. What a caller may not know of is refused, not missing."""
    return opened(uow.boards.find(slug), slug, caller, scope)


def opened(board: Board | None, slug: str, caller: Caller | None, scope: Scope) -> Board:
    """What `admit` does, once the board is looked up."""
    if board is not None and board.public and scope == "read":
        return board
    known(caller).require(scope, None if board is None else board.id)
    if board is None:
        raise Missing("unknown-board", f"there is no board {slug!r}", got=slug)
    return board


def _secret(authorization: str | None) -> str | None:
    if authorization is None:
        return None
    if not authorization.lower().startswith(BEARER):
        raise Unauthenticated("unknown-scheme", "expected 'Authorization: Bearer <key>'")
    return authorization[len(BEARER) :].strip()
