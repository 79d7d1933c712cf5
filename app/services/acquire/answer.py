"""What a request for pairs is answered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Answer:
    """A policy and the assignments made by it; `retry_after` in seconds where the pool has nothing left."""

    document: dict[str, Any]
    retry_after: int | None = None
