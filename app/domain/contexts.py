"""Contexts: how they are registered, and what a known one may still learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ConfigDict

from app.domain.errors import Conflict, DomainError
from app.domain.fields import Flag, Name, Payload, Prose


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextDraft:
    """A context as it is registered: in the pool, or offered already."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    id: Name
    features: dict[str, Any] | None = None
    text: Prose | None = None
    payload: Payload = None
    offered: Flag = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """A context as it has to be: `features` canonical, None where nothing was said of them."""

    features: Mapping[str, Any] | None
    text: str | None = None
    payload: Any = None
    offered: bool = False


@dataclass(frozen=True, slots=True)
class Known:
    """A stored context."""

    id: int
    features: Mapping[str, Any]
    text: str | None
    payload: Any
    offered: bool


def adds(wanted: Wanted, known: Known) -> bool:
    """Whether a known context would learn something: a text, a payload, that it is offered."""
    text = known.text is None and wanted.text is not None
    payload = known.payload is None and wanted.payload is not None
    return text or payload or (wanted.offered and not known.offered)


def contradiction(wanted: Wanted, known: Known) -> DomainError | None:
    """Why a known context cannot be what is wanted; what is not said contradicts nothing."""
    if wanted.features is not None and not _same(wanted.features, known.features):
        return _other("features", known.features, wanted.features)
    if wanted.text is not None and known.text is not None and wanted.text != known.text:
        return _other("text", known.text, wanted.text)
    if wanted.payload is not None and known.payload is not None and not _same(wanted.payload, known.payload):
        return _other("payload", known.payload, wanted.payload)
    return None


def _same(sent: Any, kept: Any) -> bool:
    """Whether documents are equal; a float that was kept may come back as the whole number that its digits spell."""
    if isinstance(sent, Mapping) and isinstance(kept, Mapping):
        return sent.keys() == kept.keys() and all(_same(value, kept[name]) for name, value in sent.items())
    if isinstance(sent, list) and isinstance(kept, list):
        return len(sent) == len(kept) and all(map(_same, sent, kept))
    return bool(sent == (float(kept) if isinstance(sent, float) and isinstance(kept, int) else kept))


def _other(path: str, known: Any, wanted: Any) -> DomainError:
    detail = f"the context is known with other {path}"
    return Conflict("context-differs", detail, path=path, expected=known, got=wanted)
