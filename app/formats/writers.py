"""Write rows as JSON lines, CSV or Parquet, block by block."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

import orjson
import pyarrow as pa
from pyarrow import parquet

Container = Literal["jsonl", "csv", "parquet"]
CONTAINERS: tuple[Container, ...] = get_args(Container)
MEDIA_TYPES: dict[Container, str] = {
    "jsonl": "application/x-ndjson",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
}
JSON = orjson.OPT_APPEND_NEWLINE | orjson.OPT_UTC_Z

ColumnKind = Literal["text", "number", "numbers", "names", "tiers", "moment"]
Blocks = Iterable[Sequence[Sequence[Any]]]
"""Rows in blocks, each row with one value for each column."""

ARROW: dict[ColumnKind, pa.DataType] = {
    "text": pa.string(),
    "number": pa.float64(),
    "numbers": pa.list_(pa.float64()),
    "names": pa.list_(pa.string()),
    "tiers": pa.list_(pa.list_(pa.string())),
    "moment": pa.timestamp("us", tz="UTC"),
}


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: ColumnKind


def write(container: Container, columns: Sequence[Column], blocks: Blocks) -> Iterator[bytes]:
    """The bytes of the file, as they come."""
    return WRITERS[container](columns, blocks)


def _json_lines(columns: Sequence[Column], blocks: Blocks) -> Iterator[bytes]:
    names = [column.name for column in columns]
    for rows in blocks:
        yield b"".join(orjson.dumps(dict(zip(names, row, strict=True)), option=JSON) for row in rows)


def _csv(columns: Sequence[Column], blocks: Blocks) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([column.name for column in columns])
    for rows in blocks:
        writer.writerows([_cell(value) for value in row] for row in rows)
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


def _cell(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    return orjson.dumps(value).decode() if isinstance(value, list) else value


def _parquet(columns: Sequence[Column], blocks: Blocks) -> Iterator[bytes]:
    schema = pa.schema([(column.name, ARROW[column.kind]) for column in columns])
    sink = _Sink()
    with parquet.ParquetWriter(sink, schema, compression="zstd") as writer:
        for rows in blocks:
            values = zip(*rows, strict=True) if rows else [()] * len(columns)
            arrays = [pa.array(list(each), field.type) for each, field in zip(values, schema, strict=True)]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            yield sink.taken()
    yield sink.taken()


class _Sink(io.RawIOBase):
    """Takes bytes in and hands them on."""

    def __init__(self) -> None:
        self._held = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._held += data
        return len(data)

    def taken(self) -> bytes:
        """What came in since the last time."""
        taken = bytes(self._held)
        self._held.clear()
        return taken


WRITERS: dict[Container, Callable[[Sequence[Column], Blocks], Iterator[bytes]]] = {
    "jsonl": _json_lines,
    "csv": _csv,
    "parquet": _parquet,
}
