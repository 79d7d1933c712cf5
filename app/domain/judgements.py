"""Judgements: a judge's chances of each outcome for an ordered pair."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ConfigDict

from app.domain.errors import Invalid
from app.domain.fields import Name, Share

SLACK = 0.02
"""Chances written with two digits rarely add up to one exactly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgementDraft:
    """A judgement as it is sent; outcomes it does not name have chance 0."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    judge: Name
    context: Name
    left: Name
    right: Name
    probabilities: dict[Name, Share]


def check(draft: JudgementDraft, outcomes: Sequence[str]) -> Mapping[str, float]:
    """The chances of the named outcomes, in the board's order; refused unless they are a distribution."""
    if draft.left == draft.right:
        raise Invalid("same-item", "both sides are one item", path="right", expected="another item", got=draft.right)
    for name in draft.probabilities:
        if name not in outcomes:
            detail, path = f"the board has no outcome {name!r}", f"probabilities.{name}"
            raise Invalid("unknown-outcome", detail, path=path, expected=list(outcomes), got=name)
    total = sum(draft.probabilities.values())
    if abs(total - 1) > SLACK:
        detail = "the chances do not add up to 1"
        raise Invalid("not-a-distribution", detail, path="probabilities", expected=1, got=total)
    return {name: draft.probabilities[name] for name in outcomes if name in draft.probabilities}
