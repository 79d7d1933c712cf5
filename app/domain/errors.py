"""What the rules of the service refuse, and why.

DomainError
├── Invalid           what was sent breaks a rule of its own
├── Missing           what was named does not exist
├── Conflict          what was sent contradicts what is stored
├── Unauthenticated   nobody, or nobody known, asks
├── Forbidden         the key does not reach this far
├── Limited           too much in too short a time
└── Unavailable       a service that this one needs is not there
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Any, ClassVar


class Kind(Enum):
    """The classes of refusal that a caller tells apart."""

    INVALID = auto()
    MISSING = auto()
    CONFLICT = auto()
    UNAUTHENTICATED = auto()
    FORBIDDEN = auto()
    LIMITED = auto()
    UNAVAILABLE = auto()


class DomainError(Exception):
    """A refusal.

    Parameters
    ----------
    code : stable name of the rule, such as ``unknown-item``.
    detail : one sentence for people.
    path : the offending field, dotted, such as ``context.features.language``.
    expected : what would have been accepted.
    got : what was sent.
    """

    kind: ClassVar[Kind]

    def __init__(
        self, code: str, detail: str, *, path: str | None = None, expected: Any = None, got: Any = None
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.path = path
        self.expected = expected
        self.got = got

    def under(self, prefix: str) -> DomainError:
        """The same refusal of a field that lies within `prefix`."""
        path = prefix if self.path is None else f"{prefix}.{self.path}"
        return type(self)(self.code, self.detail, path=path, expected=self.expected, got=self.got)


class Invalid(DomainError):
    """What was sent breaks a rule of its own."""

    kind = Kind.INVALID


class Missing(DomainError):
    """What was named does not exist."""

    kind = Kind.MISSING


class Conflict(DomainError):
    """What was sent contradicts what is stored."""

    kind = Kind.CONFLICT


class Unauthenticated(DomainError):
    """Nobody, or nobody known, asks."""

    kind = Kind.UNAUTHENTICATED


class Forbidden(DomainError):
    """The key does not reach this far."""

    kind = Kind.FORBIDDEN


class Limited(DomainError):
    """Too much in too short a time; `retry_after` says in how many seconds it may work again."""

    kind = Kind.LIMITED
    retry_after: int = 1


class Unavailable(DomainError):
    """A service that this one needs is not there, or too busy; `retry_after` says in how many seconds to try again."""

    kind = Kind.UNAVAILABLE
    retry_after: int = 1


def limited(code: str, detail: str, *, retry_after: int) -> Limited:
    """A refusal that says when to come back."""
    error = Limited(code, detail)
    error.retry_after = retry_after
    return error
