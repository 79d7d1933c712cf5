"""One face for every container: columns, records with their lines, bytes read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Protocol

from app.formats.rows import BrokenFile, Located, UnusableFile
from app.formats.sources.documents import BOM, array, lines
from app.formats.sources.opened import Opened
from app.formats.sources.parquet import ParquetRows
from app.formats.sources.tables import Table

FIRST = 1_000
PARQUET = b"PAR1"


class Source(Protocol):
    """A file of records."""

    columns: tuple[str, ...]

    def records(self, wanted: Collection[str]) -> Iterator[Located]:
        """Every record; a container that can may leave out the columns that are not wanted."""
        ...


class Documents:
    """JSON objects; their columns are the keys of the first thousand."""

    def __init__(self, records: Iterator[Located]) -> None:
        first, self._records = peek(records, FIRST)
        keys = chain.from_iterable(located.record for located in first if isinstance(located.record, dict))
        self.columns = tuple(dict.fromkeys(keys))

    def records(self, _wanted: Collection[str]) -> Iterator[Located]:
        """Every object, whole."""
        return self._records


@contextmanager
def opened(path: Path) -> Iterator[Opened]:
    """The file's bytes, closed at the end."""
    file = Opened(path)
    try:
        yield file
    finally:
        file.close()


def source_of(file: Opened) -> Source:
    """CSV, TSV, JSON, JSONL or Parquet, plain or gzip.

    Parquet and JSON are told by their first bytes, tab-separated text by the file's name; everything else is CSV.

    Raises
    ------
    UnusableFile
        where the file is empty, or has no header where one is due.
    """
    start = file.start().removeprefix(BOM)
    if not start:
        raise UnusableFile(f"{file.path}: the file is empty")
    if start.startswith(PARQUET):
        return ParquetRows(file)
    match start.lstrip()[:1]:
        case b"[":
            return Documents(array(file))
        case b"{":
            return Documents(lines(file))
    return Table(file, delimiter="\t" if ".tsv" in file.path.suffixes else ",")


def peek(records: Iterator[Located], size: int) -> tuple[list[Located], Iterator[Located]]:
    """The first records, and all of them; a file that breaks among the first says so after them."""
    first: list[Located] = []
    try:
        for located in islice(records, size):
            first.append(located)
    except BrokenFile as error:
        return first, chain(first, _raising(error))
    return first, chain(first, records)


def _raising(error: BrokenFile) -> Iterator[Located]:
    yield from ()
    raise error
