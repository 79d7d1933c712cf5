"""The reference of the HTTP interface as a page, read from the OpenAPI document: nothing comes from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Document = Mapping[str, Any]
METHODS = ("get", "post", "put", "patch", "delete")


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a field of a body."""

    name: str
    place: str
    kind: str
    required: bool
    default: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Operation:
    method: str
    path: str
    brief: str
    meaning: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Group:
    name: str
    operations: tuple[Operation, ...]


def groups(document: Document) -> tuple[Group, ...]:
    """The operations by their tag, in the document's order."""
    found: dict[str, list[Operation]] = {}
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                operation = methods[method]
                tag = (operation.get("tags") or ["other"])[0]
                found.setdefault(tag, []).append(_operation(document, method, path, operation))
    return tuple(Group(name, tuple(operations)) for name, operations in found.items())


def _operation(document: Document, method: str, path: str, operation: Document) -> Operation:
    parameters = [_parameter(document, each) for each in operation.get("parameters", ())]
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    fields = [] if body is None else list(_body(document, body))
    meaning = operation.get("description") or operation.get("summary") or ""
    brief = meaning.partition(". ")[0].partition("\n")[0].rstrip(".")
    return Operation(method.upper(), path, brief, meaning, tuple(parameters + fields))


def _parameter(document: Document, parameter: Document) -> Field:
    schema = parameter.get("schema", {})
    meaning = parameter.get("description") or schema.get("description") or ""
    kind, default = _kind(document, schema), _default(schema)
    return Field(parameter["name"], parameter["in"], kind, parameter.get("required", False), default, meaning)


def _body(document: Document, schema: Document) -> Iterator[Field]:
    resolved = _resolved(document, schema)
    for option in resolved.get("anyOf", ()):
        resolved = max(resolved, _resolved(document, option), key=lambda each: len(each.get("properties", ())))
    required = resolved.get("required", ())
    for name, each in resolved.get("properties", {}).items():
        meaning = each.get("description", "")
        yield Field(name, "body", _kind(document, each), name in required, _default(each), meaning)


def _resolved(document: Document, schema: Document) -> Document:
    reference = schema.get("$ref")
    if reference is None:
        return schema
    found: Document = document["components"]["schemas"][reference.rsplit("/", 1)[-1]]
    return found


def _kind(document: Document, schema: Document) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        resolved = _resolved(document, schema)
        return schema["$ref"].rsplit("/", 1)[-1] if "properties" in resolved else _kind(document, resolved)
    if "enum" in schema:
        return " | ".join(str(value) for value in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    for joint in ("anyOf", "oneOf", "allOf"):
        if joint in schema:
            return " | ".join(dict.fromkeys(_kind(document, each) for each in schema[joint]))
    if schema.get("type") == "array":
        return f"list of {_kind(document, schema.get('items', {}))}"
    return str(schema.get("format") or schema.get("type") or "any")


def _default(schema: Document) -> str:
    default = schema.get("default")
    return "" if default is None or isinstance(default, dict | list) else str(default)
