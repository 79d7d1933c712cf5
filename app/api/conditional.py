"""Answers that say whether anything changed: strong entity tags and 304 (RFC 9110, 8.8.3 and 13.1.2)."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from fastapi import Request, Response

from app.api.kept import Kept, keep
from app.api.slot import slot_of
from app.domain.boards import Board


def tag_of(*parts: object) -> str:
    """What a strong tag holds: a digest of everything that decides an answer."""
    return sha256(repr(parts).encode()).hexdigest()[:32]


def conditional(
    request: Request, board: Board, tag: str, body: Callable[[], bytes], *, for_readers: bool = True
) -> Response:
    """304 where the reader has this answer already, else the answer; never kept by the reader without asking again.

    Parameters
    ----------
    for_readers : whether everybody who may read the board gets this same answer: then the process keeps it.
    """
    kept = keep(board.id, public=board.public, tag=tag, body=body())
    slot = slot_of(request.scope)
    if slot is not None and for_readers:
        slot.kept = kept
    return _response(kept, request)


def _response(kept: Kept, request: Request) -> Response:
    variant = kept.variant(_sent(request, "accept-encoding"))
    if variant.known(_sent(request, "if-none-match")):
        return Response(status_code=304, headers={name.decode(): value.decode() for name, value in variant.unchanged})
    return Response(variant.body, headers={name.decode(): value.decode() for name, value in variant.headers})


def _sent(request: Request, name: str) -> bytes:
    """A header as one list, in however many lines it came."""
    return ",".join(request.headers.getlist(name)).encode("latin-1")
