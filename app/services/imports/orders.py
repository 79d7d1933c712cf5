"""What to import, and how it went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from app.formats.plan import Request
from app.formats.rows import Place


@dataclass(frozen=True, slots=True)
class Order:
    """What to import, and where to.

    Parameters
    ----------
    path : the file.
    board : slug of the board, which is created where it is new.
    request : how the file is read.
    board_fields : fields of a new board, over those that follow from the file.
    create_items : whether a board that is not open gets the file's unknown items.
    """

    path: Path
    board: str
    request: Request
    board_fields: Mapping[str, Any] = field(default_factory=dict)
    create_items: bool = False


class Reject(NamedTuple):
    """A record that did not get in: where it starts, why, and how many votes or judgements it stood for."""

    place: Place
    reason: str
    times: int


class Watcher(Protocol):
    """Hears how an import goes."""

    def advanced(self, position: int, size: int) -> None:
        """So many bytes of the file are imported."""
        ...

    def rejected(self, reject: Reject) -> None:
        """A record was rejected."""
        ...


@dataclass(slots=True)
class Summary:
    """How an import went.

    Parameters
    ----------
    votes, judgements : how many were ``created``, ``duplicate`` and ``rejected``.
    excluded : votes that are stored but do not count, as the file says.
    bad_rows : rows of the file that could not be read as votes or judgements.
    other_rows : rows that the conditions left out.
    seconds : wall time.
    broken : where the file itself stops being readable; what came before is imported.
    """

    board: str
    new_board: bool
    votes: Counter[str] = field(default_factory=Counter)
    judgements: Counter[str] = field(default_factory=Counter)
    excluded: int = 0
    bad_rows: int = 0
    other_rows: int = 0
    seconds: float = 0.0
    broken: str | None = None

    @property
    def created(self) -> int:
        """Votes and judgements that are new."""
        return self.votes["created"] + self.judgements["created"]

    @property
    def duplicate(self) -> int:
        """Votes and judgements that were there."""
        return self.votes["duplicate"] + self.judgements["duplicate"]

    @property
    def rejected(self) -> int:
        """Votes, judgements and unreadable rows that did not get in."""
        return self.bad_rows + self.votes["rejected"] + self.judgements["rejected"]

    @property
    def complete(self) -> bool:
        """Whether everything in the file is on the board now."""
        return self.rejected == 0 and self.broken is None
