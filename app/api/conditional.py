"""Answers that say whether anything changed: strong entity tags and 304 (RFC 9110, 8.8.3 and 13.1.2)."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

from fastapi import Request, Response

from app.domain.boards import Board


def tag_of(*parts: object) -> str:
    """A strong tag of everything that decides an answer."""
    return f'"{sha256(repr(parts).encode()).hexdigest()[:32]}"'


def conditional(request: Request, board: Board, tag: str, body: Callable[[], bytes]) -> Response:
    """304 where the reader has this answer already, else the answer; never kept without asking again."""
    headers = {
        "ETag": tag,
        "Cache-Control": f"{'public' if board.public else 'private'}, no-cache",
        "Vary": "Authorization",
    }
    if _has(request.headers.get("if-none-match", ""), tag):
        return Response(status_code=304, headers=headers)
    return Response(body(), headers=headers, media_type="application/json")


def _has(sent: str, tag: str) -> bool:
    tags = [each.strip().removeprefix("W/") for each in sent.split(",")]
    return tag in tags or "*" in tags
