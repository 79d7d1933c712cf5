"""Estimands that this installation adds to the built-in ones, by name; every process registers them as it starts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from app.domain.boards import BoardConfig
from app.domain.errors import Invalid
from app.domain.estimands import BUILT_IN
from app.stats.errors import InvalidInput
from app.stats.gars import CustomEstimand

# Part of the program, as the built-in ones are: filled once, by the process's composition root.
_REGISTERED: dict[str, CustomEstimand] = {}


def register(estimands: Iterable[CustomEstimand]) -> None:
    """Make these the installation's own estimands, in place of any before."""
    _REGISTERED.clear()
    _REGISTERED.update({each.name: each for each in estimands})


def registered(kind: str, name: str) -> CustomEstimand:
    """The estimand of this kind under the name that a board gives it.

    Raises
    ------
    InvalidInput
        Where none is registered.
    """
    if kind not in _REGISTERED:
        raise InvalidInput(f"the estimand {kind!r} is not registered in this process; ORTHORANK_ESTIMANDS names those")
    return replace(_REGISTERED[kind], name=name)


def check_registered(config: BoardConfig) -> None:
    """Refuse a board that names an estimand which is neither built in nor registered."""
    for named in config.named_estimands:
        if named.kind not in BUILT_IN and named.kind not in _REGISTERED:
            raise Invalid(
                "unknown-estimand",
                f"no estimand is called {named.kind!r} here",
                path="estimands",
                expected=[*BUILT_IN, *sorted(_REGISTERED)],
                got=named.kind,
            )
