"""Votes on menus: several items were shown at once and ranked, or one of them was picked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from app.domain.errors import DomainError, Invalid
from app.domain.outcomes import Category

Kind = Literal["partial", "winner"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LARGEST = 100
"""Items on a menu."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """An ordered partition of a menu.

    Parameters
    ----------
    menu : items by their own names.
    tiers : of items, best first, as sent: items of the menu that are left out share one more, below the others.
    kind : `winner` where one item was picked.
    """

    menu: tuple[str, ...]
    tiers: tuple[tuple[str, ...], ...]
    kind: Kind = "partial"

    @property
    def content(self) -> tuple[list[str], list[list[str]], Kind]:
        """What it says, the same for every spelling."""
        listed = {name for tier in self.tiers for name in tier}
        rest = [name for name in self.menu if name not in listed]
        tiers = [sorted(tier) for tier in (*self.tiers, rest) if tier]
        return sorted(self.menu), tiers, self.kind


@dataclass(frozen=True, slots=True)
class Verdicts:
    """How votes on ordered pairs say what a ranking says of two of its items.

    Parameters
    ----------
    first, second : numbers of the outcomes that credit one item alone.
    undecided : of the one that credits both alike; or of both above, each for half.
    """

    first: int
    second: int
    undecided: tuple[int, ...]


def verdicts_of(categories: Sequence[Category]) -> Verdicts | None:
    """What a board's outcomes make of rankings; None where no outcome credits one item alone."""
    first = _number(categories, lambda each: each.first > 0 == each.second)
    second = _number(categories, lambda each: each.second > 0 == each.first)
    alike = _number(categories, lambda each: each.first == each.second > 0)
    if first is None or second is None:
        return None
    return Verdicts(first, second, (first, second) if alike is None else (alike,))


def check(menu: Sequence[str] | None, ranking: Sequence[Sequence[str]] | None, kind: str | None) -> None:
    """Refuse what is no ranking of a menu, whatever its items are."""
    if menu is None or ranking is None:
        missing = "menu" if menu is None else "ranking"
        raise Invalid("missing", f"a vote on a menu needs its {missing}", path=missing, expected="items")
    if kind is not None and kind not in KINDS:
        raise Invalid("unknown-kind", f"no ranking is {kind!r}", path="kind", expected=list(KINDS), got=kind)
    if len(menu) < 2:
        raise Invalid("small-menu", "nothing can be chosen here", path="menu", expected="two items or more", got=menu)
    for place, tier in enumerate(ranking):
        if not tier:
            raise Invalid("empty-tier", "a tier without an item", path=f"ranking.{place}", expected="items", got=tier)
    if kind == "winner" and [len(tier) for tier in ranking] != [1]:
        raise Invalid("no-winner", "a winner is one item", path="ranking", expected="one tier of one item", got=ranking)


def ranking_of(
    menu: Sequence[str], ranking: Sequence[Sequence[str]], kind: str | None, own: Mapping[str, str]
) -> Ranking:
    """The ranking with the items' own names.

    Parameters
    ----------
    menu, ranking, kind : as sent, checked by `check`.
    own : the items' own names, by those that were used.

    Raises
    ------
    Invalid
        where an item is on the menu twice, ranked twice, or ranked without being on the menu.
    """
    placed: set[str] = set()
    for at, name in enumerate(menu):
        _place(own.get(name, name), placed, f"menu.{at}", name)
    ranked: set[str] = set()
    for place, tier in enumerate(ranking):
        for at, name in enumerate(tier):
            path = f"ranking.{place}.{at}"
            if own.get(name, name) not in placed:
                detail = f"{name!r} is not on the menu"
                raise Invalid("outside-menu", detail, path=path, expected=list(menu), got=name)
            _place(own.get(name, name), ranked, path, name)
    tiers = tuple(tuple(own.get(name, name) for name in tier) for tier in ranking)
    return Ranking(tuple(own.get(name, name) for name in menu), tiers, "winner" if kind == "winner" else "partial")


def not_one_sided() -> DomainError:
    """A board whose outcomes always credit both items takes no rankings."""
    detail = "a ranking puts one item above another, and no outcome of the board credits one item alone"
    return Invalid("pairs-only", detail, path="menu", expected="left, right and outcome")


def _place(item: str, placed: set[str], path: str, name: str) -> None:
    if item in placed:
        raise Invalid("item-twice", f"{name!r} is there already", path=path, expected="another item", got=name)
    placed.add(item)


def _number(categories: Sequence[Category], wanted: Callable[[Category], bool]) -> int | None:
    return next((number for number, each in enumerate(categories) if wanted(each)), None)
