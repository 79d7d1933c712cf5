"""Who may do what: keys against boards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from app.db.assignments import Standing
from app.db.boards import Version
from app.db.keys import Bearer
from app.db.unit_of_work import UnitOfWork
from app.domain.boards import Board
from app.domain.errors import DomainError, Missing, Unauthenticated
from app.domain.keys import Caller, Scope, fingerprint
from app.services import keys

BEARER = "bearer "


class Knocked(NamedTuple):
    """Who knocks, at which board, and how it stands there."""

    caller: Caller | None
    board: Board | None
    standing: Standing


def identify(uow: UnitOfWork, authorization: str | None) -> Caller | None:
    """Who sends this Authorization header; None where there is none."""
    secret = _secret(authorization)
    return None if secret is None else keys.authenticate(uow, secret)


def knock(uow: UnitOfWork, slug: str, authorization: str | None) -> Knocked:
    """Who sends this Authorization header, the board asked for and what a draw on it depends on, in one round trip."""
    secret = _secret(authorization)
    found = uow.boards.knock(slug, None if secret is None else fingerprint(secret))
    return Knocked(None if secret is None else keys.admitted(uow, found.bearer), found.board, found.standing)


def knock_all(
    uow: UnitOfWork, slugs: Iterable[str], authorizations: Iterable[str | None]
) -> tuple[dict[str, Version], dict[str | None, Caller | DomainError | None]]:
    """Which of the boards exist, and who sends each header, as `identify` would say or refuse, in one round trip."""
    secrets: dict[str | None, str | None] = {}
    told: dict[str | None, Caller | DomainError | None] = {}
    for authorization in authorizations:
        try:
            secrets[authorization] = _secret(authorization)
        except DomainError as error:
            told[authorization] = error
    fingerprints = {header: fingerprint(secret) for header, secret in secrets.items() if secret is not None}
    versions, bearers = uow.boards.knock_all(slugs, fingerprints.values())
    for header in secrets:
        told[header] = _admitted(uow, bearers.get(fingerprints[header])) if header in fingerprints else None
    return versions, told


def _admitted(uow: UnitOfWork, bearer: Bearer | None) -> Caller | DomainError:
    try:
        return keys.admitted(uow, bearer)
    except DomainError as error:
        return error


def counted_as(caller: Caller | None, address: str) -> str:
    """Under which name the rate limit counts a request."""
    return f"address:{address}" if caller is None else f"key:{caller.key_id}"


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
