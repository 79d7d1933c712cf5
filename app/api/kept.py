"""Answers kept as the bytes that go out: plain and compressed, with their entity tags (RFC 9110, 8.8.3 and 13.1.2)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from gzip import compress
from typing import Literal

Encoding = Literal["identity", "gzip"]
Header = tuple[bytes, bytes]

WORTH_COMPRESSING = 1024
LEVEL = 5
"""Of gzip: a rendering of 20 kB takes a third of a millisecond, and higher levels save 2% more."""
VARY = (b"vary", b"Authorization, Accept-Encoding")


@dataclass(frozen=True, slots=True)
class Variant:
    """One encoding of an answer. Its tag is its own: the same tag means the same bytes."""

    tag: str
    headers: tuple[Header, ...]
    unchanged: tuple[Header, ...]
    body: bytes

    def known(self, tags: bytes) -> bool:
        """Whether a reader who sent this If-None-Match header has this variant (RFC 9110, 13.1.2: weak comparison).

        One who has another variant gets this one whole: a 304 would name a tag that he has nothing under.
        """
        if not tags:
            return False
        sent = [each.strip().removeprefix("W/") for each in tags.decode("latin-1").split(",")]
        return self.tag in sent or "*" in sent


@dataclass(frozen=True, slots=True)
class Kept:
    """An answer about a board."""

    board_id: int
    public: bool
    plain: Variant
    zipped: Variant

    @property
    def size(self) -> int:
        """Bytes in memory, about."""
        return 2048 + len(self.plain.body) + (len(self.zipped.body) if self.zipped is not self.plain else 0)

    def variant(self, accepted: bytes) -> Variant:
        """The encoding for a reader who sent this Accept-Encoding header."""
        return self.zipped if accepts_gzip(accepted) else self.plain


def keep(board_id: int, *, public: bool, tag: str, body: bytes) -> Kept:
    """Make the variants of a JSON document.

    Parameters
    ----------
    tag : of everything that decides the answer, without quotes.
    """
    control = f"{'public' if public else 'private'}, no-cache".encode()
    plain = _variant(f'"{tag}"', body, control, ())
    if len(body) < WORTH_COMPRESSING:
        return Kept(board_id, public, plain, plain)
    zipped = compress(body, LEVEL, mtime=0)
    return Kept(board_id, public, plain, _variant(f'"{tag}-gzip"', zipped, control, [(b"content-encoding", b"gzip")]))


def _variant(tag: str, body: bytes, control: bytes, extra: Iterable[Header]) -> Variant:
    unchanged = ((b"etag", tag.encode()), (b"cache-control", control), VARY)
    size = (b"content-length", str(len(body)).encode())
    return Variant(tag, (size, (b"content-type", b"application/json"), *extra, *unchanged), unchanged, body)


@lru_cache(maxsize=256)
def accepts_gzip(accepted: bytes) -> bool:
    """Whether an Accept-Encoding header allows gzip (RFC 9110, 12.5.3)."""
    weights: dict[str, float] = {}
    for entry in accepted.decode("latin-1").lower().split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        weights[name] = min((_weight(each) for each in parameters), default=1.0)
    return weights.get("gzip", weights.get("x-gzip", weights.get("*", 0.0))) > 0.0


def _weight(parameter: str) -> float:
    name, _, value = parameter.partition("=")
    try:
        return float(value) if name.strip() == "q" else 1.0
    except ValueError:
        return 0.0
