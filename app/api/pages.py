"""Numbers of stored things, and cursors: where the next page of a list begins."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import Path, Query

from app.domain.errors import Invalid

LARGEST_NUMBER = 2**63 - 1
Number = Annotated[int, Path(ge=1, le=LARGEST_NUMBER)]
"""The number of a stored thing, in the path."""
Limit = Annotated[int, Query(ge=1, le=1000, description="rows a page")]
Cursor = Annotated[str | None, Query(max_length=40, description="`next` of the page before")]


def position(cursor: str | None) -> int:
    """The number after which the page begins."""
    if cursor is None:
        return 0
    try:
        number = int(base64.urlsafe_b64decode(cursor))
    except (binascii.Error, ValueError):
        number = -1
    if not 0 <= number <= LARGEST_NUMBER:
        raise Invalid("bad-cursor", "not a cursor of this list", path="cursor", expected="`next` of a page", got=cursor)
    return number


def cursor_after(numbers: list[int], limit: int) -> str | None:
    """The cursor of the next page; None where this page was not full."""
    return base64.urlsafe_b64encode(str(numbers[-1]).encode()).decode() if len(numbers) == limit else None
