"""Read documents at the door; what does not fit is told field by field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from app.domain.errors import Invalid

T = TypeVar("T")
BRANCHES = {"Estimand", "constrained-str"}
"""What the parser calls the branches of a union: no part of a path."""

CODES = {"missing": "missing-field", "unexpected_keyword_argument": "unknown-field", "extra_forbidden": "unknown-field"}


class FieldError(NamedTuple):
    """One field that does not fit."""

    code: str
    path: str
    expected: str
    got: Any


class BadFields(Invalid):
    """A document of which one field or several do not fit; `fields` names them all."""

    def __init__(self, found: Sequence[FieldError]) -> None:
        first = found[0]
        detail = f"{first.path}: {first.expected}" if first.path else first.expected
        super().__init__(first.code, detail, path=first.path, expected=first.expected, got=first.got)
        self.fields = tuple(found)


def parse(adapter: TypeAdapter[T], document: Any) -> T:
    """The document as what the adapter reads, or a refusal that names its fields."""
    try:
        return adapter.validate_python(document)
    except ValidationError as error:
        raise BadFields(field_errors(error.errors(include_url=False))) from None


def field_errors(errors: Sequence[Mapping[str, Any]], *, skip: int = 0) -> list[FieldError]:
    """The parser's errors as ours, without those of a union's branch that was clearly not meant.

    Parameters
    ----------
    skip : leading parts of each location that name no field.
    """
    found = [_field_error(error, skip) for error in errors]
    paths = {each.path for each in found}
    meant = [each for each in found if not any(path.startswith(f"{each.path}.") for path in paths)]
    return list({each.path: each for each in reversed(meant)}.values())[::-1]


def _field_error(error: Mapping[str, Any], skip: int) -> FieldError:
    parts = [str(part) for part in error["loc"][skip:]]
    path = ".".join(part for part in parts if part not in BRANCHES and "[" not in part)
    missing = error["type"] == "missing"
    return FieldError(
        CODES.get(error["type"], "bad-field"), path, str(error["msg"]), None if missing else error.get("input")
    )
