"""What a router asks: which mixture of items to use in a context, at which cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from app.domain.errors import Conflict, DomainError, Invalid
from app.domain.fields import Amount, Name

Method = Literal["solver", "policy"]
MOST_CONTEXTS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedContext:
    """A context to choose for; declared features that are not sent are missing."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    features: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EquilibriumDraft:
    """A request for equilibria: `costs` replace those of items, `budget` bounds the expected cost of each mixture."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    contexts: Annotated[tuple[RoutedContext, ...], Field(max_length=MOST_CONTEXTS)]
    costs: Annotated[dict[Name, Amount], Field(max_length=10_000)] | None = None
    budget: Amount | None = None
    method: Method = "solver"


def check(draft: EquilibriumDraft, regulariser: str) -> None:
    """Refuse what a method, or the board's regulariser, cannot answer."""
    asked = {"costs": draft.costs, "budget": draft.budget}
    for path, got in asked.items():
        if draft.method == "policy" and got is not None:
            detail = f"the policy was fitted for the items' own costs: {path} are for the solver"
            raise Invalid(f"{path}-with-policy", detail, path=path, expected="method solver", got=got)
    if draft.budget is not None and regulariser == "kl":
        detail = "a board with the regulariser kl knows no budget"
        raise Invalid("budget-with-kl", detail, path="budget", expected="null", got=draft.budget)


def unknown_item(item: str, known: Sequence[str]) -> DomainError:
    """A cost of nothing on the board."""
    detail = f"the board has no item {item!r}"
    return Invalid("unknown-item", detail, path=f"costs.{item}", expected=list(known), got=item)


def two_costs(item: str, other: str) -> DomainError:
    """Costs of one item under two names."""
    detail = f"{item!r} and {other!r} are one item"
    return Invalid("item-twice", detail, path=f"costs.{item}", expected="each item once", got=item)


def infeasible(budget: float, least: float) -> DomainError:
    """No mixture is so cheap."""
    detail = f"the cheapest item costs {least:g}"
    return Invalid("budget-infeasible", detail, path="budget", expected=f"at least {least:g}", got=budget)


def nothing_yet() -> DomainError:
    """A board that has no refit, or none that could tell items apart."""
    detail = "no refit has told items apart yet; GET …/equilibrium says why"
    return Conflict("no-equilibrium", detail, expected="a refit with votes that link two items or more")


def no_policy(regulariser: str, strength: float) -> DomainError:
    """A policy is fitted under l2 with a strength alone."""
    detail = "a policy is fitted at a refit, under the regulariser l2 with a strength above 0"
    got = {"regulariser": regulariser, "lambda": strength}
    return Invalid("no-policy", detail, path="method", expected="method solver", got=got)
