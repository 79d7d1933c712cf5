"""Reads files of records as an import does."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from app.domain.features import Feature
from app.domain.outcomes import PRESETS
from app.formats import plan
from app.formats.reader import Reader, Row
from app.formats.rows import BadRow, BrokenFile, Located, Record
from app.formats.sources.source import FIRST, opened, peek, source_of


class Contents(NamedTuple):
    """The rows of a file with their lines, its bad rows, its features, and how it broke."""

    rows: list[tuple[int, Row]]
    problems: list[tuple[int, str]]
    features: tuple[Feature, ...]
    broken: str | None


def records_of(path: Path, wanted: Sequence[str] = ()) -> list[Located]:
    """All records of a file."""
    with opened(path) as file:
        return list(source_of(file).records(wanted))


def contents_of(path: Path, request: plan.Request, *, outcomes: Sequence[str] = ()) -> Contents:
    """Everything that an import would read of a file."""
    rows: list[tuple[int, Row]] = []
    problems: list[tuple[int, str]] = []
    broken = None
    with opened(path) as file:
        source = source_of(file)
        first, records = peek(source.records(plan.wanted(request, source.columns)), FIRST)
        made = plan.make(request, source.columns, [each.record for each in first if isinstance(each.record, dict)])
        names = outcomes or [category.name for category in PRESETS[request.format.outcomes]]
        reader = Reader(made, outcomes=names, kinds={feature.name: feature.kind for feature in made.features})
        try:
            for place, record in records:
                _read(reader, place.line, record, (rows, problems))
        except BrokenFile as error:
            broken = str(error)
    return Contents(rows, problems, made.features, broken)


def _read(
    reader: Reader,
    line: int,
    record: Record | BadRow,
    into: tuple[list[tuple[int, Row]], list[tuple[int, str]]],
) -> None:
    rows, problems = into
    try:
        if isinstance(record, BadRow):
            raise record
        if reader.takes(record):
            rows.extend((line, row) for row in reader.read(record))
    except BadRow as error:
        problems.append((line, str(error)))
