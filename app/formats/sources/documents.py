"""JSON: one object a line, or one array of objects, split without holding the whole of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import orjson

from app.formats.rows import BadRow, BrokenFile, Located, Place, Record
from app.formats.sources.opened import Opened

LONGEST_ELEMENT = 1 << 26
BOM = b"\xef\xbb\xbf"
STRUCTURE = re.compile(rb'\\.|["{}\[\],]', re.DOTALL)
OPENING, CLOSING = frozenset(b"{["), frozenset(b"}]")
QUOTE, COMMA = b'",'


def lines(opened: Opened) -> Iterator[Located]:
    """Records of a file with one JSON object a line; blank lines are skipped."""
    for number, line in enumerate(opened.lines(), 1):
        written = (line.removeprefix(BOM) if number == 1 else line).strip()
        if written:
            yield Located(Place(number), parsed(written))


def array(opened: Opened) -> Iterator[Located]:
    """Records of a file that is one JSON array.

    Raises
    ------
    BrokenFile
        where the array does not end, or something follows its end.
    """
    elements = _Elements()
    for chunk in opened.chunks():
        for place, written in elements.feed(chunk):
            yield Located(place, parsed(written))
    elements.finish()


def parsed(written: bytes) -> Record | BadRow:
    """The object that the bytes write down, or what is wrong with them."""
    try:
        value = orjson.loads(written)
    except orjson.JSONDecodeError:
        return _leniently(written)
    return value if isinstance(value, dict) else BadRow(f"expected a JSON object, got {type(value).__name__}")


def _leniently(written: bytes) -> Record | BadRow:
    # Python and pandas write NaN and Infinity, which JSON does not have: they are missing values.
    try:
        value = json.loads(written, parse_constant=lambda _: None)
    except (ValueError, RecursionError) as error:
        return BadRow(f"not JSON: {error}")
    return value if isinstance(value, dict) else BadRow(f"expected a JSON object, got {type(value).__name__}")


class _Elements:
    """Finds where the elements of an array begin and end, block by block."""

    def __init__(self) -> None:
        self._held = b""
        self._scanned = 0
        self._line = 1
        self._found = 0
        self._depth = 0
        self._quoted = False

    def feed(self, chunk: bytes) -> Iterator[tuple[Place, bytes]]:
        """(place, bytes) of every element that ends within the block."""
        held = self._held + chunk
        begin = end = 0
        for token in STRUCTURE.finditer(held, self._scanned):
            end = token.end()
            if self._ends(held[token.start()]):
                yield from self._element(held[begin : token.start()])
                begin = end
        # A lone backslash at the end waits for the byte that it escapes.
        waits = held.endswith(b"\\") and end < len(held)
        self._held, self._scanned = held[begin:], len(held) - begin - waits
        if len(self._held) > LONGEST_ELEMENT:
            raise BrokenFile(f"the element at line {self._line} is longer than {LONGEST_ELEMENT >> 20} MiB")

    def finish(self) -> None:
        """Refuse an array that is still open, or is followed by more."""
        if self._depth or self._held.strip():
            raise BrokenFile(f"expected the end of the JSON array, see line {self._line}")

    def _ends(self, token: int) -> bool:
        """Follow the structure; whether an element (or what stands around the array) ends with this token."""
        if token == QUOTE:
            self._quoted = not self._quoted
        elif not self._quoted and token in OPENING:
            self._depth += 1
            return self._depth == 1
        elif not self._quoted and token in CLOSING:
            self._depth -= 1
            return self._depth == 0
        return token == COMMA and self._depth == 1 and not self._quoted

    def _element(self, written: bytes) -> Iterator[tuple[Place, bytes]]:
        content = written.strip()
        lead = written[: written.find(content)] if content else b""
        if content and content != BOM:
            self._found += 1
            yield Place(self._line + lead.count(b"\n"), self._found), content
        self._line += written.count(b"\n")
