"""Features of contexts: what a board declares, and the one form in which a context keeps them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ConfigDict

from app.domain.errors import DomainError, Invalid
from app.domain.fields import LARGEST, Label, whole

FeatureKind = Literal["categorical", "numeric", "text", "vector"]
LONGEST_LEVEL, LONGEST_TEXT = 500, 200_000


@dataclass(frozen=True, slots=True)
class Feature:
    """A declared feature; `dimensions` is a vector's length, or what a text is reduced to."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: Label
    kind: FeatureKind
    dimensions: whole(1, 4096) | None = None  # type: ignore[valid-type]

    def __post_init__(self) -> None:
        if self.kind == "vector" and self.dimensions is None:
            raise Invalid(
                "dimensions-missing",
                f"vector feature {self.name!r} needs its length",
                path="features",
                expected="dimensions",
            )
        if self.kind in ("categorical", "numeric") and self.dimensions is not None:
            raise Invalid(
                "dimensions-unused", f"a {self.kind} feature has no dimensions", path="features", got=self.dimensions
            )


def check(features: Sequence[Feature], segments: Sequence[str]) -> None:
    """Refuse names that repeat and segments that are not declared categorical features."""
    names = [feature.name for feature in features]
    if len(names) != len(set(names)):
        raise Invalid("features-repeat", "two features have one name", path="features", got=names)
    levels = sorted(feature.name for feature in features if feature.kind == "categorical")
    for segment in segments:
        if segment not in levels:
            raise Invalid(
                "segment-not-categorical",
                f"segment {segment!r} is not a declared categorical feature",
                path="segments",
                expected=levels,
                got=segment,
            )
    if len(segments) != len(set(segments)):
        raise Invalid("segments-repeat", "a segment is named twice", path="segments", got=list(segments))


def described(document: Mapping[str, Any], text: str | None, features: Sequence[Feature]) -> Mapping[str, Any]:
    """A context's features; where one text is declared and not sent, the context's own text stands in."""
    texts = [feature.name for feature in features if feature.kind == "text"]
    return document if text is None or len(texts) != 1 else {texts[0]: text, **document}


def storable(value: str) -> bool:
    """Whether PostgreSQL can keep the string: no NUL, no half of a surrogate pair."""
    return "\x00" not in value and (value.isascii() or not any("\ud800" <= mark <= "\udfff" for mark in value))


class FeatureReader:
    """Reads the features of contexts sent to a board into their canonical form.

    Missing ones are left out, numbers are floats, names are sorted: equal contexts have equal documents.
    """

    def __init__(self, features: Sequence[Feature]) -> None:
        self._readers = {feature.name: _reader(feature) for feature in features}

    def read(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """The canonical document, or a refusal that names the feature."""
        readers, document = self._readers, {}
        for name in sorted(sent):
            value, reader = sent[name], readers.get(name)
            if reader is None:
                raise self._undeclared(name, value)
            if value is not None:
                document[name] = reader(value)
        return document

    def _undeclared(self, name: str, value: Any) -> DomainError:
        return Invalid(
            "undeclared-feature",
            f"the board declares no feature {name!r}",
            path=f"features.{name}",
            expected=sorted(self._readers),
            got=value,
        )


def _reader(feature: Feature) -> Callable[[Any], Any]:
    path = f"features.{feature.name}"

    def refuse(expected: str, got: Any) -> DomainError:
        return Invalid("bad-feature", f"{feature.name} is not {expected}", path=path, expected=expected, got=got)

    def number(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LARGEST:
            raise refuse(f"a number between -{LARGEST:g} and {LARGEST:g}", value)
        return float(value) + 0.0

    def words(longest: int) -> Callable[[Any], str]:
        def read(value: Any) -> str:
            if not isinstance(value, str) or len(value) > longest or not storable(value):
                raise refuse(f"a string of at most {longest} characters, none of them NUL", value)
            return value

        return read

    def vector(value: Any) -> list[float]:
        if not isinstance(value, list) or len(value) != feature.dimensions:
            raise refuse(f"a list of {feature.dimensions} numbers", value)
        return [number(entry) for entry in value]

    match feature.kind:
        case "categorical":
            return words(LONGEST_LEVEL)
        case "numeric":
            return number
        case "text":
            return words(LONGEST_TEXT)
        case "vector":
            return vector
