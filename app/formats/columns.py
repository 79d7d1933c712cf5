"""Columns by name: plain, nested by dots (`meta.turns`), or joined (`question_id/turn`)."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from app.formats.cells import text
from app.formats.rows import BadRow, Record

Cell = Callable[[Record], Any]


class Absent(BadRow):
    """A record without the column."""


def lookup(record: Record, column: str) -> Any:
    """The cell of a column.

    Raises
    ------
    Absent
        where the record has no such column. A name with dots is looked up whole first, then as a path.
    """
    if column in record:
        return record[column]
    for cut, letter in enumerate(column):
        inner = record.get(column[:cut]) if letter == "." else None
        if isinstance(inner, dict):
            return _inside(inner, column, cut)
    raise Absent(f"no column {column!r}")


def _inside(inner: Record, column: str, cut: int) -> Any:
    try:
        return lookup(inner, column[cut + 1 :])
    except Absent:
        raise Absent(f"no column {column!r}") from None


def split(expression: str, known: Collection[str]) -> tuple[str, ...]:
    """The columns that an expression joins; a column whose own name holds a slash is one."""
    return (expression,) if expression in known else tuple(expression.split("/"))


def cell(parts: tuple[str, ...]) -> Cell:
    """A function from a record to the cell, or to the cells joined by a slash."""
    if len(parts) > 1:
        return lambda record: _joined(record, parts)
    (column,) = parts

    def plain(record: Record) -> Any:
        try:
            return record[column]
        except KeyError:
            return lookup(record, column)

    return plain


def optional(parts: tuple[str, ...]) -> Cell:
    """Like `cell`, but None where a column is absent."""
    strict = cell(parts)

    def lenient(record: Record) -> Any:
        try:
            return strict(record)
        except Absent:
            return None

    return lenient


def _joined(record: Record, parts: tuple[str, ...]) -> str:
    values = [text(lookup(record, part), part) for part in parts]
    for part, value in zip(parts, values, strict=True):
        if value is None:
            raise BadRow(f"column {part!r} is empty")
    return "/".join(value or "" for value in values)
