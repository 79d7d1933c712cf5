"""Estimands that a board may name: the built-in ones, variants of them, and those that the installation adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import ConfigDict, Field

from app.domain.errors import Invalid
from app.domain.fields import Label

BUILT_IN = ("borda", "bt", "rc", "threshold", "robust")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimand:
    """A variant: rank centrality with a damping, a threshold or worst rival with a temperature, or what is registered.

    `kind` is borda, bt, rc, threshold, robust, or the name of an estimand that the installation registers.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: Label
    kind: Label
    damping: Annotated[float, Field(strict=True, ge=0, lt=1, allow_inf_nan=False)] | None = None
    temperature: Annotated[float, Field(strict=True, ge=1e-4, le=100, allow_inf_nan=False)] | None = None

    def __post_init__(self) -> None:
        if self.name in BUILT_IN:
            raise Invalid("estimand-taken", f"{self.name!r} is a built-in estimand", path="estimands", got=self.name)
        if self.damping is not None and self.kind != "rc":
            raise Invalid("damping-unused", f"{self.kind} has no damping", path="estimands", got=self.damping)
        if self.temperature is not None and self.kind not in ("threshold", "robust"):
            raise Invalid(
                "temperature-unused", f"{self.kind} has no temperature", path="estimands", got=self.temperature
            )


def names_of(estimands: Sequence[str | Estimand]) -> list[str]:
    """The names, checked: each once."""
    names = [entry if isinstance(entry, str) else entry.name for entry in estimands]
    if len(names) != len(set(names)):
        raise Invalid("estimands-repeat", "two estimands have one name", path="estimands", got=names)
    return names
