"""Estimands that a board may name: the built-in ones and variants of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from app.domain.errors import Invalid
from app.domain.fields import Label

BUILT_IN = ("borda", "bt", "rc", "threshold", "robust")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimand:
    """A variant: rank centrality with a damping, a threshold or worst rival with a temperature."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: Label
    kind: Literal["borda", "bt", "rc", "threshold", "robust"]
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
    """The names, checked: each once, a plain name built in."""
    names = [entry if isinstance(entry, str) else entry.name for entry in estimands]
    for entry in estimands:
        if isinstance(entry, str) and entry not in BUILT_IN:
            raise Invalid(
                "unknown-estimand",
                f"no built-in estimand is called {entry!r}",
                path="estimands",
                expected=list(BUILT_IN),
                got=entry,
            )
    if len(names) != len(set(names)):
        raise Invalid("estimands-repeat", "two estimands have one name", path="estimands", got=names)
    return names
