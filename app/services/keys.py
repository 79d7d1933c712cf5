"""Make, list, check and revoke bearer keys."""

from __future__ import annotations

from datetime import UTC, datetime

from app.db.keys import Bearer, KeyView
from app.db.models.keys import Key
from app.db.unit_of_work import UnitOfWork
from app.domain.errors import Forbidden, Missing, Unauthenticated
from app.domain.keys import SHOWN, Caller, KeyDraft, fingerprint, new_secret
from app.services import boards


def create(uow: UnitOfWork, draft: KeyDraft, *, by: Caller | None = None) -> tuple[KeyView, str]:
    """Make a key and commit; the key and its secret, which nobody can read again.

    Parameters
    ----------
    by : who asks; a key bound to a board makes only keys of that board. None: the operator.
    """
    board = None if draft.board is None else boards.find(uow, draft.board)
    board_id = None if board is None else board.id
    if by is not None:
        by.require("admin", board_id)
    secret = new_secret()
    scopes = sorted(set(draft.scopes))
    key = Key(
        name=draft.name, prefix=secret[:SHOWN], hash=fingerprint(secret), scopes=list[str](scopes), board_id=board_id
    )
    uow.keys.add(key)
    uow.commit()
    return KeyView(key, draft.board), secret


def listed(uow: UnitOfWork, *, by: Caller | None = None) -> list[KeyView]:
    """The keys that the caller may see: all, or those of its board."""
    return uow.keys.list(None if by is None else by.board_id)


def revoke(uow: UnitOfWork, key_id: int, *, by: Caller | None = None) -> None:
    """End a key and commit."""
    key = uow.keys.find(key_id)
    if key is None:
        raise Missing("unknown-key", "there is no such key", got=key_id)
    if by is not None and by.board_id is not None and by.board_id != key.board_id:
        raise Forbidden("other-board", "the key is bound to one board and this key is not of it")
    uow.keys.revoke(key, datetime.now(UTC))
    uow.commit()


def authenticate(uow: UnitOfWork, secret: str) -> Caller:
    """Who holds this key; its use is written down."""
    return admitted(uow, uow.keys.bearer(fingerprint(secret)))


def admitted(uow: UnitOfWork, bearer: Bearer | None) -> Caller:
    """The caller whose key was found; its use is written down."""
    if bearer is None:
        raise Unauthenticated("unknown-key", "the key is not known, or revoked")
    if bearer.stale:
        uow.keys.touch(bearer.caller.key_id)
        uow.commit()
    return bearer.caller
