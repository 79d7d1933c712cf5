"""CSV and tab-separated text: a header, then one record a row."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator

from app.formats.rows import BadRow, Located, Place, UnusableFile
from app.formats.sources.opened import Opened

LONGEST_FIELD = 1 << 24
BOM = b"\xef\xbb\xbf"


class Table:
    """Rows of a text table.

    Quoted fields may hold line breaks; lines end with LF or CRLF; a byte order mark is dropped; blank lines are
    skipped. Text is UTF-8: a row with other bytes is a bad one.

    Parameters
    ----------
    opened : the file.
    delimiter : what stands between two fields.
    """

    def __init__(self, opened: Opened, *, delimiter: str) -> None:
        self._foreign = False
        # The limit is the process's; a text of a conversation is longer than the 128 KiB that it starts with.
        csv.field_size_limit(LONGEST_FIELD)
        self._rows = csv.reader(self._text(opened), delimiter=delimiter, strict=True)
        self.columns = self._header(opened)

    def records(self, _wanted: Collection[str]) -> Iterator[Located]:
        """Every row below the header."""
        columns, width = self.columns, len(self.columns)
        while True:
            line = self._rows.line_num + 1
            try:
                row = next(self._rows, None)
            except csv.Error as error:
                yield Located(Place(line), BadRow(f"not a row of a table: {error}"))
                continue
            if row is None:
                return
            if self._foreign:
                yield Located(Place(line), self._not_text())
            elif len(row) == width:
                yield Located(Place(line), dict(zip(columns, row, strict=True)))
            elif row:
                yield Located(Place(line), BadRow(f"expected {width} columns, got {len(row)}"))

    def _header(self, opened: Opened) -> tuple[str, ...]:
        try:
            header = next(self._rows, None)
        except csv.Error as error:
            raise UnusableFile(f"{opened.path}: the header is no row of a table: {error}") from None
        if not header or self._foreign:
            raise UnusableFile(f"{opened.path}: expected a header of column names in UTF-8 on the first line")
        repeated = sorted({name for name in header if header.count(name) > 1})
        if repeated:
            raise UnusableFile(f"{opened.path}: the header names {', '.join(map(repr, repeated))} twice")
        return tuple(header)

    def _text(self, opened: Opened) -> Iterator[str]:
        for number, line in enumerate(opened.lines()):
            raw = line.removeprefix(BOM) if number == 0 else line
            try:
                yield raw.decode()
            except UnicodeDecodeError:
                self._foreign = True
                yield raw.decode(errors="replace")

    def _not_text(self) -> BadRow:
        self._foreign = False
        return BadRow("the row is not UTF-8 text")
