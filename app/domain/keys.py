"""Bearer keys: what they look like, how they are kept, how far they reach."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter

from app.domain.errors import Forbidden
from app.domain.fields import Line, Slug

Scope = Literal["votes", "acquire", "read", "admin"]
SIGN = "or_"
SHOWN = len(SIGN) + 6


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDraft:
    """A key as it is asked for; without `board` it reaches all boards."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    scopes: Annotated[list[Scope], Field(min_length=1, max_length=4)]
    name: Line = ""
    board: Slug | None = None


KEY_DRAFT: TypeAdapter[KeyDraft] = TypeAdapter(KeyDraft)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a key's number, scopes and board (None: all boards)."""

    key_id: int
    scopes: Sequence[str]
    board_id: int | None

    def has(self, scope: Scope) -> bool:
        """Whether the key carries the scope; `admin` implies the others."""
        return scope in self.scopes or "admin" in self.scopes

    def may(self, scope: Scope, board_id: int | None) -> bool:
        """Whether the key carries the scope for this board (None: for all boards)."""
        return self.has(scope) and self.board_id in (None, board_id)

    def require(self, scope: Scope, board_id: int | None) -> None:
        """Refuse unless the key carries the scope for this board (None: for all boards)."""
        if not self.has(scope):
            raise Forbidden("scope-missing", f"the key lacks scope {scope!r}", expected=scope, got=list(self.scopes))
        if self.board_id is not None and self.board_id != board_id:
            raise Forbidden("other-board", "the key is bound to one board and this is not it")


def new_secret() -> str:
    """A fresh key."""
    return SIGN + secrets.token_urlsafe(32)


def fingerprint(secret: str) -> bytes:
    """What is stored of a key. It is random and long, so a plain hash cannot be searched."""
    return sha256(secret.encode()).digest()
