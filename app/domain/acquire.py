"""What an annotation tool asks: pairs to label for contexts of its own, or for some of the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Annotated, Any, Literal
from uuid import UUID

import orjson
from pydantic import ConfigDict, Field

from app.domain.errors import Conflict, DomainError, Invalid
from app.domain.fields import Name, Payload, Prose, whole

Mode = Literal["bernoulli", "single", "one"]
MOST_CONTEXTS = 1_000
KEY_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedContext:
    """A context to draw pairs for; a known one need not repeat what is known of it."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    id: Name
    features: dict[str, Any] | None = None
    text: Prose | None = None
    payload: Payload = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AcquireDraft:
    """A request for pairs: for `contexts`, or for `count` pairs of the pool; `mode` is the board's unless given."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    contexts: Annotated[tuple[AskedContext, ...], Field(max_length=MOST_CONTEXTS)] | None = None
    count: whole(1, MOST_CONTEXTS) | None = None  # type: ignore[valid-type]
    mode: Mode | None = None
    annotator: Name | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDraft:
    """Why a pair is given back unanswered."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    reason: Prose | None = None


def check(draft: AcquireDraft) -> None:
    """Refuse a request that asks for both, or names a context twice."""
    if draft.contexts is not None and draft.count is not None:
        detail = "a count is of the pool; contexts that are sent bring their own number"
        raise Invalid("count-with-contexts", detail, path="count", expected="contexts or count", got=draft.count)
    names = [context.id for context in draft.contexts or ()]
    if len(names) != len(set(names)):
        repeated = next(name for at, name in enumerate(names) if name in names[:at])
        detail = f"context {repeated!r} is sent twice: each is one draw"
        raise Invalid("context-repeats", detail, path="contexts", got=repeated)


def digest(draft: AcquireDraft) -> bytes:
    """A hash of all that a request says."""
    content = orjson.dumps(asdict(draft), option=orjson.OPT_SORT_KEYS)
    return blake2b(content, digest_size=KEY_DIGEST_BYTES).digest()


def uuid_of(text: str) -> UUID | None:
    """The id that a text spells, if it does."""
    try:
        return UUID(text)
    except ValueError:
        return None


def few_items(active: Sequence[str]) -> DomainError:
    """There is no pair to draw."""
    detail = "a pair needs two active items"
    return Invalid("few-items", detail, expected="at least 2 active items", got=list(active))


def beyond_budget(budget: float, most: float, mode: Mode) -> DomainError:
    """No policy of the mode can spend so much."""
    detail = f"mode {mode} can spend at most {most:g} on a context, and the board's budget is more"
    return Invalid("budget-unreachable", detail, path="acquisition.budget", expected=f"at most {most:g}", got=budget)


def key_taken(key: str) -> DomainError:
    """An idempotency key stands for one request only."""
    return Conflict("key-taken", "another request was sent under this key", path="Idempotency-Key", got=key)


def not_open(assignment: str, state: str) -> DomainError:
    """An assignment that cannot be answered or released any more."""
    said = {
        "answered": "this assignment is answered",
        "skipped": "this assignment was released",
        "lapsed": "the lease of this assignment ended, and its pair was given to somebody else",
        "open": "this assignment was not handed out",
    }
    return Conflict(
        f"assignment-{state}", said[state], path="assignment", expected="a leased assignment", got=assignment
    )


def unknown_assignment(assignment: str) -> DomainError:
    """No assignment of this id was made on the board."""
    detail = "no such assignment was handed out on this board"
    return Invalid("unknown-assignment", detail, path="assignment", got=assignment)
