"""Match what was asked for with what a file has, before anything of it is imported."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from app.domain.features import Feature, FeatureKind
from app.formats.cells import is_number, vector
from app.formats.columns import Absent, Cell, cell, lookup, optional, split
from app.formats.format import COUNT, FEATURE, PROBABILITY, Format, RowKind
from app.formats.rows import BadRow, Record, UnusableFile

Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller says about a file.

    Parameters
    ----------
    format : the format it starts from.
    fields : field → column, over those of the format.
    where : (column, value) of the rows to take; two values of one column are alternatives.
    kind : what the rows are, over what the format says.
    feature_kinds : kinds of features that are not to be told from the file.
    """

    format: Format
    fields: Mapping[str, str] = field(default_factory=dict)
    where: Sequence[tuple[str, str]] = ()
    kind: RowKind | None = None
    feature_kinds: Mapping[str, FeatureKind] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """A request with every column found: field → cell, and the features with the kinds that their cells show."""

    request: Request
    cells: Mapping[str, Cell]
    features: tuple[Feature, ...]

    @property
    def kind(self) -> RowKind | None:
        """What all the rows are, or None where the format tells them apart row by row."""
        votes_where = self.request.format.votes_where
        return self.request.kind or (None if votes_where else self.request.format.kind)


def wanted(request: Request, columns: Collection[str]) -> frozenset[str]:
    """The file's columns that the request may look at."""
    joined = [*_expressions(request, columns).values(), *((column,) for column, _ in _conditions(request))]
    parts = [part for parts in joined for part in parts]
    return frozenset(name for part in parts for name in _outermost(part, columns))


def make(request: Request, columns: Collection[str], first: Sequence[Record]) -> Plan:
    """Find every column in the header, or else in the first records.

    Raises
    ------
    UnusableFile
        where a column is missing, or the fields are too few to make a vote or a judgement of.
    """
    expressions = _expressions(request, columns)
    given = {**request.format.fields, **request.fields}
    found = _Finder(columns, first)
    for parts in [*((column,) for column, _ in _conditions(request)), *(expressions[name] for name in given)]:
        found.demand(parts)
    cells = {name: cell(parts) for name, parts in expressions.items() if name in given}
    for name in expressions.keys() - given.keys():
        if found.has(expressions[name]):
            cells[name] = optional(expressions[name])
    plan = Plan(request, cells, tuple(_features(request, cells, first)))
    _check_fields(plan)
    return plan


def _expressions(request: Request, columns: Collection[str]) -> dict[str, Parts]:
    """Field → columns: the format's optional ones, its own, then those of the caller."""
    every = [name for name in columns if name.startswith(FEATURE)] if request.format.every_feature else []
    merged = {**{name: name for name in every}, **request.format.optional, **request.format.fields, **request.fields}
    if "outcome" not in request.fields and any(name.startswith((COUNT, PROBABILITY)) for name in request.fields):
        merged.pop("outcome", None)
    return {name: split(expression, columns) for name, expression in merged.items()}


def _conditions(request: Request) -> list[tuple[str, str]]:
    votes_where = request.format.votes_where
    return [*request.where, *([votes_where] if votes_where else [])]


def _outermost(part: str, columns: Collection[str]) -> list[str]:
    prefixes = [part, *(part[:cut] for cut, letter in enumerate(part) if letter == ".")]
    return [prefix for prefix in prefixes if prefix in columns]


class _Finder:
    """Knows which columns a file has."""

    def __init__(self, columns: Collection[str], first: Sequence[Record]) -> None:
        self._columns = columns
        self._first = first

    def has(self, parts: Parts) -> bool:
        """Whether every one of the columns is there."""
        return all(self._has_part(part) for part in parts)

    def demand(self, parts: Parts) -> None:
        """Refuse the file where a column is not there; a file without records lacks none."""
        for part in parts:
            if self._columns and not self._has_part(part):
                raise UnusableFile(f"no column {part!r}; the file has {', '.join(self._columns)}")

    def _has_part(self, part: str) -> bool:
        return part in self._columns or any(self._inside(record, part) for record in self._first)

    def _inside(self, record: Record, part: str) -> bool:
        try:
            lookup(record, part)
        except Absent:
            return False
        return True


def _features(request: Request, cells: Mapping[str, Cell], first: Sequence[Record]) -> list[Feature]:
    declared = {name.removeprefix(FEATURE): each for name, each in cells.items() if name.startswith(FEATURE)}
    unknown = sorted(request.feature_kinds.keys() - declared.keys())
    if unknown:
        raise UnusableFile(f"a kind is given for {', '.join(unknown)}, which no column is mapped to")
    return [_feature(name, declared[name], first, request.feature_kinds.get(name)) for name in sorted(declared)]


def _feature(name: str, read: Cell, first: Sequence[Record], kind: FeatureKind | None) -> Feature:
    values = [value for value in map(_quiet(read), first) if value is not None and value != ""]
    if kind is None:
        kind = "numeric" if values and all(map(is_number, values)) else "categorical"
    if kind != "vector":
        return Feature(name, kind)
    return Feature(name, kind, _length(name, values))


def _length(name: str, values: Sequence[object]) -> int:
    try:
        lengths = sorted({len(vector(value, name) or ()) for value in values})
    except BadRow as error:
        raise UnusableFile(f"feature.{error}") from None
    if len(lengths) != 1:
        raise UnusableFile(f"feature.{name}: expected vectors of one length, got lengths {lengths[:5]}")
    return lengths[0]


def _quiet(read: Cell) -> Callable[[Record], object]:
    def value(record: Record) -> object:
        try:
            return read(record)
        except BadRow:
            return None

    return value


def _check_fields(plan: Plan) -> None:
    """Refuse a mapping that no vote (or judgement) could be made of."""
    named = plan.cells.keys()
    verdict = "outcome" in named or any(name.startswith((COUNT, PROBABILITY)) for name in named)
    if plan.kind == "votes" and {"menu", "ranking"} <= named:
        return
    needed = ["left", "right", *(["judge", "context"] if plan.kind == "judgements" else [])]
    missing = [name for name in needed if name not in named] + ([] if verdict else ["outcome"])
    if missing:
        raise UnusableFile(f"no column is mapped to {', '.join(missing)}: say --map {missing[0]}=COLUMN")
