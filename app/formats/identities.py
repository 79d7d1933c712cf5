"""Ids of imported votes: the same file gives the same ids, so that importing it again adds nothing."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha1
from uuid import NAMESPACE_URL, UUID, uuid5

import orjson

from app.formats.rows import VoteRow

UUID_LENGTH = 36
RESERVED, VERSION_5 = (0xF000 << 64) | (0xC000 << 48), (0x5000 << 64) | (0x8000 << 48)
"""The bits of a UUID that name its version and variant (RFC 9562)."""

ID_AND_TIMES = VoteRow._fields.index("id")


class Identities:
    """Gives every vote of one file its id, by UUIDv5 within the board.

    A row's own id is kept where it is a UUID, else hashed. A row without one is identified by its content and by how
    often that content came before in the file: one counted row and its copies written out have the same ids. This
    takes some 100 bytes of memory for each distinct content.

    Parameters
    ----------
    board : the board's slug.
    """

    def __init__(self, board: str) -> None:
        self._namespace = uuid5(NAMESPACE_URL, f"orthorank:{board}").bytes
        self._seen: dict[int, int] = {}

    def of(self, row: VoteRow) -> Iterator[UUID]:
        """The ids of the `times` votes that a row stands for."""
        if row.id is not None:
            return self._named(row.id, row.times)
        return self._by_content(row)

    def _named(self, name: str, times: int) -> Iterator[UUID]:
        own = _as_uuid(name) or self._hashed(b"id:" + name.encode())
        yield own
        for number in range(1, times):
            yield self._hashed(b"id:%b:%d" % (own.bytes, number))

    def _by_content(self, row: VoteRow) -> Iterator[UUID]:
        said = row[:ID_AND_TIMES] if row.menu is None else (*row[:ID_AND_TIMES], row.kind, row.menu, row.ranking)
        own = self._hashed(b"row:" + orjson.dumps(said, option=orjson.OPT_SORT_KEYS))
        key = int.from_bytes(own.bytes[:8])
        before = self._seen.get(key, 0)
        self._seen[key] = before + row.times
        for number in range(before, before + row.times):
            yield self._hashed(b"row:%b:%d" % (own.bytes, number)) if number else own

    def _hashed(self, content: bytes) -> UUID:
        digest = sha1(self._namespace + content, usedforsecurity=False).digest()
        return UUID(int=int.from_bytes(digest[:16]) & ~RESERVED | VERSION_5)


def _as_uuid(name: str) -> UUID | None:
    if len(name) != UUID_LENGTH:
        return None
    try:
        return UUID(name)
    except ValueError:
        return None
