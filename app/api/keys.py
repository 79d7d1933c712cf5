"""Keys over HTTP."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.api.deps import KnownCaller, PortsOf, Work
from app.api.pages import Number
from app.api.routing import api_router
from app.cache.news import EVERY_BOARD
from app.db.keys import KeyView as StoredKey
from app.domain.keys import KeyDraft
from app.services import keys

router = api_router(prefix="/v1/keys", tag="keys")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyView:
    """A key without its secret; `prefix` is how the secret begins."""

    id: int
    name: str
    prefix: str
    scopes: list[str]
    board: str | None
    created_at: datetime
    last_used_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey(KeyView):
    """A key with its secret, shown this once."""

    key: str


@dataclass(frozen=True, slots=True)
class KeyList:
    """Keys, oldest first."""

    keys: list[KeyView]


@router.post("", status_code=201)
def create(draft: KeyDraft, work: Work, caller: KnownCaller) -> NewKey:
    """Make a key. The answer is the only place where it is ever shown."""
    view, secret = keys.create(work, draft, by=caller)
    return NewKey(key=secret, **_fields(view))


@router.get("")
def list_keys(work: Work, caller: KnownCaller) -> KeyList:
    """The keys in use: all, or those of the board that the caller's key is bound to."""
    caller.require("admin", caller.board_id)
    return KeyList([KeyView(**_fields(view)) for view in keys.listed(work, by=caller)])


@router.delete("/{key}", status_code=204)
def revoke(key: Number, work: Work, ports: PortsOf, caller: KnownCaller) -> None:
    """End a key."""
    caller.require("admin", caller.board_id)
    keys.revoke(work, key, by=caller)
    ports.news.publish(EVERY_BOARD, "keys")


def _fields(view: StoredKey) -> dict[str, Any]:
    key = view.key
    return {
        "id": key.id,
        "name": key.name,
        "prefix": key.prefix,
        "scopes": key.scopes,
        "board": view.board,
        "created_at": key.created_at,
        "last_used_at": key.last_used_at,
    }
